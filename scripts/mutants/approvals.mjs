// Approvals (I15, A1 to A3), what falls due while nobody decides (S4-33 to S4-39), and what an approval covers (Q6, X-23).
import { SIMULATED } from "./simulator.mjs";

const inApprovals = (title) => [{ file: "test/behaviour/approvals.test.ts", title: `approvals on memory ${title}` }];
const inEscalation = (title) => [{ file: "test/behaviour/escalation.test.ts", title: `escalation on memory ${title}` }];

const MESSAGE_IDS = "test/behaviour/message-ids.test.ts";

export const approvalMutants = [
  {
    rule: "S4-34",
    name: "nobody is told of what a fork asks anew",
    changes: [
      { file: "src/worker/load-run.ts", from: "  if (cancel === null) notifyOfFork(pass, entries);\n", to: "" },
    ],
    killers: inEscalation("S4-34 S2-59"),
  },
  {
    rule: "S2-59",
    name: "what is open in a generation is open in those before it",
    changes: [
      {
        file: "src/client/fork.ts",
        from: "const isOpen = how.open.get(`${type} ${key}`) === entry;",
        to: "const isOpen = how.open.has(`${type} ${key}`);",
      },
    ],
    killers: inApprovals("P10 S2-59 a retry of a later generation"),
  },
  {
    rule: "Q6",
    name: "a retry takes along an approval that its source has used and undone",
    changes: [{ file: "src/client/fork.ts", from: "isRetry && !used.has(id) && (await", to: "isRetry && (await" }],
    killers: [
      {
        file: "test/attacks/approvals.test.ts",
        title: "Q6 S2-59 a retry does not do again what was done under an approval",
      },
    ],
  },
  {
    rule: "I15",
    name: "two people may both send the one vote that decides",
    changes: [
      {
        file: "src/core/approval-votes.ts",
        from: "const slot = quorum === 1 ? `approval:${id}` :",
        to: "const slot = quorum === 0 ? `approval:${id}` :",
      },
      // Either of the two is enough to tell the second one.
      {
        file: "src/client/approvals.ts",
        from: "if (pending !== null && !isAmong(pending, vote)) throw overtaken(run, request, pending, pending.by === vote.by);",
        to: "void pending;",
      },
    ],
    killers: inApprovals("I15 of two people"),
  },
  {
    rule: "I15",
    name: "the owner takes every vote that it finds",
    changes: [
      {
        file: "src/core/approval-votes.ts",
        from: "if (refusalOf(run, request, vote) !== null || counted.some",
        to: "if (counted.some",
      },
    ],
    killers: inApprovals("I15 the owner judges"),
  },
  {
    rule: "I15",
    name: "the actor may approve what needs four eyes",
    changes: [
      {
        file: "src/core/approval-request.ts",
        from: "return (fourEyes && person === actor) ||",
        to: "return (fourEyes && person === null) ||",
      },
    ],
    killers: inApprovals("X-23 E-14"),
  },
  {
    rule: "S4-38",
    name: "a level that has fired is forgotten by the next process",
    changes: [
      {
        file: "src/core/replay.ts",
        from: `if (entry.type === "approval.escalated") return this.#escalated(entry as Entry<ApprovalEscalated>);`,
        to: `if (entry.type === "approval.escalated") return;`,
      },
    ],
    killers: inEscalation("S4-37 S4-38"),
  },
  {
    rule: "S4-37",
    name: "a decision that came after the expiry counts",
    changes: [
      { file: "src/core/approval-votes.ts", from: "if (vote.at >= closesAt(request)) {", to: "if (vote.at < 0) {" },
    ],
    killers: inEscalation("S4-37 X-23"),
  },
  {
    rule: "S4-39",
    name: "an escalation lets nobody else decide",
    changes: [
      {
        file: "src/core/approval-request.ts",
        from: `return action === "escalate" && due <= at;`,
        to: `return action === "escalate" && due <= 0;`,
      },
    ],
    killers: inEscalation("S4-33"),
  },
  {
    rule: "X-28",
    name: "the risk chooses no service level",
    changes: [
      {
        file: "src/core/service-levels.ts",
        from: "return { ...own, ...serviceLevels?.[own.risk ?? DEFAULT_RISK] };",
        to: "return own;",
      },
    ],
    killers: inEscalation("X-28"),
  },
  {
    rule: "S4-34",
    name: "nobody is told",
    changes: [
      {
        file: "src/core/notification.ts",
        from: "if (!pass.ports.notifies || pass.dry !== null) return;",
        to: `if (!pass.ports.notifies || key !== "") return;`,
      },
    ],
    killers: inEscalation("S4-34 a notification"),
  },
  {
    rule: "S4-36",
    name: "a level approves what nobody has allowed it to",
    changes: [
      {
        file: "src/core/approval-spec.ts",
        from: `if (spec.action === "approve") assertAutoApproval(`,
        to: `if (spec.action === "deny") assertAutoApproval(`,
      },
    ],
    killers: [{ file: "src/core/approval-spec.test.ts", title: "what ctx.approve accepts S4-36" }],
  },
  {
    rule: "Q6",
    name: "an approval covers other arguments as well",
    changes: [
      {
        file: "src/core/approval-request.ts",
        from: "return { tool, arguments: given, resources",
        to: "return { tool, arguments: given === undefined, resources",
      },
    ],
    killers: [{ file: "src/core/approval-match.test.ts" }],
  },
  {
    rule: "Q6",
    name: "an approval counts for what somebody has made of the action since",
    changes: [
      {
        file: "src/core/approval-match.ts",
        from: 'return approvalHash(digest, action, scope) === approval.hash ? null : "changed_action";',
        to: 'return approvalHash(digest, action, scope) === "" ? "changed_action" : null;',
      },
    ],
    killers: [{ file: "src/core/approval-match.test.ts" }],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "Q6",
    name: "an approval may be used twice",
    changes: [{ file: "src/core/body-approvals.ts", from: "    this.#used.add(approval.id);\n", to: "" }],
    killers: [
      { file: "test/attacks/approvals.test.ts", title: "memory X-23 a call that is refused for another reason" },
    ],
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "Q6",
    name: "what was denied may be done",
    changes: [
      {
        file: "src/core/approval-match.ts",
        from: 'if (approval.decision !== "approved") return "not_approved";',
        to: 'if (approval.decision === "expired") return "not_approved";',
      },
    ],
    killers: [{ file: "src/core/approval-match.test.ts" }],
  },
  {
    rule: "I15",
    name: "a vote about another action counts",
    changes: [{ file: "src/core/approval-votes.ts", from: "if (vote.hash !== hash) {", to: 'if (vote.hash === "") {' }],
    killers: inApprovals("X-23 E-14"),
  },
  {
    rule: "I15",
    name: "one of two approves for both",
    changes: [
      {
        file: "src/core/approval-votes.ts",
        from: 'if (vote.decision !== "approved" || counted.length >= request.quorum)',
        to: 'if (vote.decision !== "approved" || counted.length >= 1)',
      },
    ],
    killers: inApprovals("I15 X-23 two of three"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "I15",
    name: "everybody may decide",
    changes: [
      {
        file: "src/core/approval-votes.ts",
        from: "if (mayDecide(approvers, vote.by, vote.roles)) return null;",
        to: "if (mayDecide(approvers, vote.by, vote.roles) || vote.at > 0) return null;",
      },
    ],
    killers: inApprovals("X-23 E-14"),
    alsoKilledBy: [SIMULATED],
  },
  {
    rule: "I15",
    name: "whoever comes second is told that their decision counts",
    changes: [
      {
        file: "src/client/approvals.ts",
        from: "      if (!isSame(earlier, vote)) throw overtaken(run, request, { ...earlier, at: row.at }, earlier.by === vote.by);\n",
        to: "      void isSame;\n",
      },
      // Either of the two is enough to tell the second one.
      {
        file: "src/client/approvals.ts",
        from: "if (pending !== null && !isAmong(pending, vote)) throw overtaken(run, request, pending, pending.by === vote.by);",
        to: "void pending;",
      },
    ],
    killers: inApprovals("I15 of two people"),
  },
  {
    rule: "S4-37",
    name: "a decision that came in time loses to the clock",
    changes: [
      {
        file: "src/core/wakeups.ts",
        from: "  if (around.inboxReadAt < (due.due as number)) return READ_INBOX;\n",
        to: '  if (due.type !== "approval.requested" && around.inboxReadAt < (due.due as number)) return READ_INBOX;\n',
      },
      // Either of the two is enough.
      {
        file: "src/core/approvals.ts",
        from: '  if (event.kind === "expiry" || DECIDING.has(action)) pass.draft.ifWake(pass.mailbox.wake);\n',
        to: "  void DECIDING;\n",
      },
    ],
    killers: [{ file: "test/behaviour/expiry-races.test.ts", title: "on memory I15 S4-37 P5" }],
  },
  {
    rule: "S4-37",
    name: "an approval whose last level falls due with its expiry waits for ever",
    changes: [
      {
        file: "src/core/approval-times.ts",
        from: "const isLevelLast = levels.at(-1)?.due === expiresAt;",
        to: "const isLevelLast = levels.at(-1)?.due === 0;",
      },
    ],
    killers: inEscalation("S4-33 S4-37"),
  },
  {
    rule: "Q5",
    name: "a signal may have the id of a vote",
    changes: [{ file: "src/client/own-signals.ts", from: "/^(approval|callback|child):|", to: "/^(callback|child):|" }],
    killers: [{ file: MESSAGE_IDS, title: "on memory" }],
  },
  {
    rule: "Q5",
    name: "a signal may have the id of what is said about phases",
    changes: [{ file: "src/client/own-signals.ts", from: "|^(advance|block|manual)-", to: "|^(advance|block)-" }],
    killers: [{ file: MESSAGE_IDS, title: "on memory" }],
  },
];
