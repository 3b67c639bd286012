// Links to approvals (L1 to L4, Q5, B54), events (S2-51), webhooks that come in (Q12), where webhooks may go (Q11) and the audit log (Q20).

const inFile = (file) => (title) => [{ file: `test/server-links/${file}.test.ts`, title }];
const inLinks = inFile("links");
const inPages = inFile("pages");
const inEvents = inFile("events");
const inHooks = inFile("hooks");
const inVerification = inFile("webhook-verification");
const inAddresses = inFile("ssrf");
const inAudit = inFile("audit");

const one = (file, from, to) => [{ file, from, to }];

export const linkMutants = [
  {
    rule: "L2",
    name: "a link decides about whatever its approval asks for by now",
    changes: one(
      "src/client/approval-links.ts",
      'if (approval.hash !== link.hash) throw refused("changed_action", link, approval);',
      "void approval.hash;",
    ),
    killers: inLinks("links to approvals Q5 Q6 a link decides about what it was made for"),
  },
  {
    rule: "L2",
    name: "what the page showed is not compared",
    changes: one(
      "src/client/approval-links.ts",
      "if (decision.hash !== undefined && decision.hash !== link.hash)",
      "if (decision.hash === null)",
    ),
    killers: inLinks("links to approvals Q5 Q6 a link decides about what it was made for"),
  },
  {
    rule: "L3",
    name: "a link for a role does without sign-in",
    changes: one("src/client/approval-links.ts", "signIn = person.startsWith(ROLE), by", "signIn = false, by"),
    killers: inLinks("links to approvals Q5 a link with sign-in"),
  },
  {
    rule: "L3",
    name: "whoever has signed in may use the link of somebody else",
    changes: one(
      "src/client/approval-links.ts",
      'if (!mayDecide([link.for], person.name, person.roles)) throw refused("wrong_audience", link);',
      "void mayDecide;",
    ),
    killers: inLinks("links to approvals Q5 a link with sign-in"),
  },
  {
    rule: "L4",
    name: "the roles of a session count for a link without sign-in",
    changes: one(
      "src/client/approval-links.ts",
      "roles: link.signIn && person !== null ? person.roles : link.roles,",
      "roles: person?.roles ?? link.roles,",
    ),
    killers: inLinks("links to approvals Q5 somebody's session"),
  },
  {
    rule: "Q5",
    name: "a retry brings a revoked link back",
    changes: one(
      "src/client/approval-links.ts",
      '|| row.state === "cancelled" || row.origin !== null)',
      '|| row.state === "cancelled")',
    ),
    killers: inLinks("links to approvals on memory Q5 a revoked link"),
  },
  {
    rule: "Q5",
    name: "a link is good for a moment longer than it says",
    changes: one(
      "src/client/approval-links.ts",
      "this.#ports.store.clock.now() >= expiresAt",
      "this.#ports.store.clock.now() > expiresAt",
    ),
    killers: inLinks("links to approvals on memory Q5 an expired link"),
  },
  {
    rule: "Q5",
    name: "the store has the token itself",
    changes: one(
      "src/client/approval-links.ts",
      'createHash("sha256").update(token).digest("base64url")',
      'createHash("sha256").update("").digest("hex").slice(0, 0) + token',
    ),
    killers: inLinks("links to approvals on memory Q5 the store knows no token"),
  },
  {
    rule: "Q5",
    name: "anybody may start the run of a link",
    changes: one("src/client/link-workflow.ts", "if (name !== LINK_WORKFLOW ||", 'if (name !== "" ||'),
    killers: inLinks("links to approvals Q5 a link is made by pawl.links alone"),
  },
  {
    rule: "B54",
    name: "a post decides without the nonce of the page",
    changes: one(
      "src/server/form-nonce.ts",
      'return salt !== "" && isSameSecret(given, nonceWith(salt, facts));',
      'return salt !== "x" || isSameSecret(given, nonceWith(salt, facts));',
    ),
    killers: inPages("the page of a link Q2 Q5 a post that no page of this link has made"),
  },
  {
    rule: "Q17",
    name: "a page shows marks that reorder text as they are",
    changes: one("src/server/html.ts", ".replace(HIDDEN, (mark)", ".replace(/\\0/g, (mark)"),
    killers: inPages("the page of a link Q5 Q17"),
  },
  {
    rule: "Q5",
    name: "operators make links that speak for others",
    changes: one(
      "src/server/routes/links.ts",
      'if (isAllowed(who, "admin")) return false;',
      'if (isAllowed(who, "operator")) return false;',
    ),
    killers: inPages("links over the API Q5 operators make links"),
  },
  {
    rule: "S2-51",
    name: "an event has no key",
    changes: one("src/client/events.ts", 'key: deliveryKey(this.#ports.host, "event", event.id),', ""),
    killers: inEvents("events on memory S2-12 S2-51 X-22"),
  },
  {
    rule: "Q9",
    name: "a filter finds what every object inherits",
    changes: one(
      "src/core/trigger.ts",
      "value === null || !Object.hasOwn(value, part)) return null;",
      "value === null || !(part in value)) return null;",
    ),
    killers: inEvents("filters Q9"),
  },
  {
    rule: "Q12",
    name: "a webhook of any age is taken",
    changes: one(
      "src/notify/webhook-verification.ts",
      "if (Math.abs(now - sentAt) <= toleranceMs) return;",
      "if (toleranceMs >= 0 || Number.isNaN(sentAt)) return;",
    ),
    killers: inVerification("Q12 refuses what is old"),
  },
  {
    rule: "Q12",
    name: "the id of a webhook is not signed",
    changes: one(
      "src/notify/webhook-verification.ts",
      'macs(keys, [`${id}.${time}.`, received.body], "base64")',
      'macs(keys, [`msg_1.${time}.`, received.body], "base64")',
    ),
    killers: inVerification("Q12 refuses what was tampered with"),
  },
  {
    rule: "Q11",
    name: "what is no address counts as public",
    changes: one("src/notify/public-address.ts", "isIP(address) === family && !NOT_PUBLIC", "!NOT_PUBLIC"),
    killers: inAddresses("Q11 refuses a name that leads inside"),
  },
  {
    rule: "Q20",
    name: "what cannot be recorded is done all the same",
    changes: one(
      "src/client/audited.ts",
      "const { n } = await begin(store, deed);",
      "const { n } = await begin(store, deed).catch(() => ({ n: 0 }));",
    ),
    killers: inAudit("the audit log of the server Q20 what cannot be recorded"),
  },
  {
    rule: "Q20",
    name: "refused attempts are not recorded",
    changes: one(
      "src/server/app.ts",
      "await auditedRefusal(route, this.#parts, facts, error);",
      "void [auditedRefusal, facts];",
    ),
    killers: inAudit("the audit log of the server Q20 has what was refused"),
  },
  {
    rule: "Q12",
    name: "a delivery of GitHub is known again by an id that anybody can change",
    changes: one(
      "src/notify/webhook-verification.ts",
      'received.dedupe === "delivery" ?',
      "received.dedupe !== null ?",
    ),
    killers: inHooks("Q12 a delivery of GitHub that somebody sends again"),
  },
];
