// Callbacks (CB1 to CB3), what is acknowledged while something expires (A2), and how often people are asked.

const inCallbacks = (title) => [{ file: "test/behaviour/callbacks.test.ts", title: `callbacks on memory ${title}` }];
const inRaces = (title) => [
  {
    file: "test/behaviour/expiry-races.test.ts",
    title: `what is acknowledged while something expires, on memory ${title}`,
  },
];
const inDenials = (title) => [{ file: "test/behaviour/denials.test.ts", title: `denials on memory ${title}` }];

export const callbackMutants = [
  {
    rule: "CB1",
    name: "each answer has an id of its own, so that two may be taken",
    changes: [
      {
        file: "src/client/callbacks.ts",
        from: "const messageId = answerId(id);",
        to: "const messageId = `${answerId(id)}:${digest}`;",
      },
    ],
    killers: inCallbacks("Q5 I15 of two different answers"),
  },
  {
    rule: "CB2",
    name: "the token is made from the run's id alone",
    changes: [
      {
        file: "src/client/callback-secrets.ts",
        from: "const proof = (secret: string, id: string) => mac(secret, ",
        to: 'const proof = (_secret: string, id: string) => mac("", ',
      },
    ],
    killers: inCallbacks("Q5 neither the token"),
  },
  {
    rule: "CB2",
    name: "the token follows the newest secret, whichever one it was made with",
    changes: [
      {
        file: "src/core/callbacks.ts",
        from: "callbackSecrets?.proof(call.secret ?? callbackSecrets.current, call.id)",
        to: "callbackSecrets?.proof(callbackSecrets.current, call.id)",
      },
    ],
    killers: inCallbacks("Q5 a new secret"),
  },
  {
    rule: "CB3",
    name: "the time of a callback is over though its answer has just been taken",
    changes: [
      {
        file: "src/core/callbacks.ts",
        from: "    pass.draft.ifWake(pass.mailbox.wake);\n",
        to: "",
      },
    ],
    killers: inRaces("B50 P5 an answer"),
  },
  {
    rule: "CB3",
    name: "an answer counts though it came too late by the store's clock",
    changes: [
      {
        file: "src/core/wakeups.ts",
        from: "one.id === row.name && row.at <= (one.due ?? row.at)",
        to: "one.id === row.name",
      },
      {
        file: "src/core/wakeups.ts",
        from: "if (mail !== null && (due === null || mail.row.at <= (due.due as number))) return mail;",
        to: "if (mail !== null) return mail;",
      },
    ],
    killers: inCallbacks("B50 an answer after the time"),
  },
  {
    rule: "A2",
    name: "an expiry is written though a vote has just been taken",
    changes: [
      {
        file: "src/core/approvals.ts",
        from: "pass.draft.ifWake(pass.mailbox.wake);",
        to: "void pass;",
      },
    ],
    killers: inRaces("I15 S4-37 P5 a vote that the store has taken before an expiry is"),
  },
  {
    rule: "A2",
    name: "an expiry that mail has overtaken is offered again as it was",
    changes: [
      {
        file: "src/core/outgoing.ts",
        from: 'return why === "wake" ? !outgoing.restsOnMail :',
        to: 'return why === "wake" ? true :',
      },
    ],
    killers: inRaces("I12 P5 other mail"),
  },
  {
    rule: "X-23",
    name: "people are asked for the same thing for ever",
    changes: [
      {
        file: "src/core/denials.ts",
        from: "const isAction = denials.action >= maxDenials.action;",
        to: "const isAction = false;",
      },
    ],
    killers: inDenials("X-23 after three denials"),
  },
  {
    rule: "P10",
    name: "a retry that takes a start key along forgets the other keys of its run",
    changes: [
      {
        file: "src/client/inherit.ts",
        from: "{ keys: [...(commit.keys ?? []), ...moved] }",
        to: "{ keys: moved }",
      },
    ],
    killers: inDenials("X-23 P10 a retry"),
  },
];
