// Approvals (I15, A1 to A3), what falls due while nobody decides (S4-33 to S4-39), and what an approval covers (Q6, X-23).

const inApprovals = (title) => [{ file: "test/behaviour/approvals.test.ts", title: `approvals on memory ${title}` }];
const inEscalation = (title) => [{ file: "test/behaviour/escalation.test.ts", title: `escalation on memory ${title}` }];

export const approvalMutants = [
  {
    rule: "I15",
    name: "two people may both send the one vote that decides",
    changes: [
      {
        file: "src/core/approval-votes.ts",
        from: "const slot = quorum === 1 ? `approval:${id}` :",
        to: "const slot = quorum === 0 ? `approval:${id}` :",
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
        file: "src/core/approval-votes.ts",
        from: "if (fourEyes && vote.by === actor) {",
        to: "if (fourEyes && vote.by === null) {",
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
        from: `if (level.due > at || level.action !== "escalate") continue;`,
        to: `if (level.due > 0 || level.action !== "escalate") continue;`,
      },
    ],
    killers: inEscalation("S4-33"),
  },
  {
    rule: "S4-34",
    name: "nobody is told",
    changes: [
      {
        file: "src/core/notification.ts",
        from: "if (!pass.ports.notifies) return;",
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
];
