// The server: who may do what, from where, and how much of it (Q1 to Q4, Q8, Q16, Q17), and live views without a gap.
const inPermissions = (title) => [{ file: "test/server/permissions.test.ts", title }];
const inSession = (title) => [{ file: "test/server/session.test.ts", title }];
const inAttacks = (title) => [{ file: "test/server/attacks.test.ts", title }];
const inFair = (title) => [{ file: "test/server/fair.test.ts", title }];
const inLive = (title) => [{ file: "test/server/live.test.ts", title }];

export const serverMutants = [
  {
    rule: "Q3",
    name: "who has signed in may do everything",
    changes: [
      {
        file: "src/server/app.ts",
        from: "if (isAllowed(shown.who, role)) return;",
        to: "if (isAllowed(shown.who, role) || role.length > 0) return;",
      },
    ],
    killers: inPermissions("Q3 each route"),
  },
  {
    rule: "Q3",
    name: "an approver may do what an operator may",
    changes: [
      {
        file: "src/server/credentials.ts",
        from: 'own === "admin" || own === role ||',
        to: 'own === "admin" || own === "approver" || own === role ||',
      },
    ],
    killers: inPermissions("Q3 each route"),
  },
  {
    rule: "Q3",
    name: "nobody is somebody who may look",
    changes: [
      {
        file: "src/server/app.ts",
        from: 'if (spec.role === "public" || spec.role === "own") return;\n    if (shown',
        to: 'if (spec.role === "public" || spec.role === "own" || spec.role === "viewer") return;\n    if (shown',
      },
    ],
    killers: inPermissions("Q3 each route"),
  },
  {
    rule: "Q4",
    name: "every request is about the server's own store",
    changes: [
      {
        file: "src/server/app.ts",
        from: "this.#parts.tenants.get(shown.who.store)",
        to: "this.#parts.tenants.get(OWN_STORE)",
      },
    ],
    killers: inPermissions("Q4 I24 what belongs"),
  },
  {
    rule: "Q2",
    name: "any host is answered for",
    changes: [
      {
        file: "src/server/same-origin.ts",
        from: "if (host !== null && this.#names.has(hostName(host))) return;",
        to: "if (host !== null) return;",
      },
    ],
    killers: inSession("Q2 a host"),
  },
  {
    rule: "Q2",
    name: "a cookie needs no token beside it",
    changes: [
      {
        file: "src/server/app.ts",
        from: "if (csrf !== null && isSameSecret(csrf, session.csrf)) return;",
        to: "return void csrf;",
      },
    ],
    killers: inAttacks("Q2 forms"),
  },
  {
    rule: "Q2",
    name: "a page of any origin may change something",
    changes: [
      {
        file: "src/server/same-origin.ts",
        from: 'if (origin !== null && !isOwn) throw foreign("origin");',
        to: "",
      },
      {
        file: "src/server/same-origin.ts",
        from: 'if (hasCookie && !isOwn) throw foreign("origin");',
        to: "void hasCookie;",
      },
    ],
    killers: inAttacks("Q2 forms"),
  },
  {
    rule: "Q2",
    name: "a browser's word about where a request comes from is passed over",
    changes: [
      {
        file: "src/server/same-origin.ts",
        from: 'if (site !== null && !isSameSite) throw foreign("sec-fetch-site");',
        to: "",
      },
    ],
    killers: inAttacks("Q2 forms"),
  },
  {
    rule: "Q2",
    name: "a form's body is read as JSON",
    changes: [
      {
        file: "src/server/request-body.ts",
        from: "if (type.trim().toLowerCase() === TYPES[reads]) return;",
        to: "if (type !== undefined) return;",
      },
    ],
    killers: inAttacks("Q2 forms"),
  },
  {
    rule: "Q1",
    name: "a one-time token is good for many times",
    changes: [{ file: "src/server/credentials.ts", from: "this.#once = null;\n    return who;", to: "return who;" }],
    killers: inSession("Q2 a browser signs in once"),
  },
  {
    rule: "Q16",
    name: "a body may be as long as it likes",
    changes: [
      {
        file: "src/server/request-body.ts",
        from: "if (said !== null && Number(said) > bodyBytes) throw tooLarge(bodyBytes);",
        to: "",
      },
      {
        file: "src/server/request-body.ts",
        from: "if (length <= bodyBytes) continue;",
        to: "if (length >= 0) continue;",
      },
    ],
    killers: inAttacks("Q8 Q16 bodies"),
  },
  {
    rule: "Q8",
    name: "JSON may be as deep as it likes",
    changes: [
      { file: "src/server/request-body.ts", from: "if (depthOf(text) > jsonDepth)", to: "if (depthOf(text) < 0)" },
    ],
    killers: inAttacks("Q8 Q16 bodies"),
  },
  {
    rule: "Q10",
    name: "a filter that is not known is passed over",
    changes: [
      {
        file: "src/server/query.ts",
        from: "if (field === undefined)\n      throw",
        to: "if (field === undefined) continue;\n    if (field === null)\n      throw",
      },
    ],
    killers: inPermissions("Q4 I24 what belongs"),
  },
  {
    rule: "Q16",
    name: "a reader who takes nothing keeps its stream",
    changes: [
      { file: "src/server/event-stream.ts", from: "      this.#ends.cutOff();\n", to: "" },
      { file: "src/server/event-stream.ts", from: "() => {\n      this.close();", to: "() => {" },
    ],
    killers: inLive("Q16 a reader"),
  },
  {
    rule: "Q16",
    name: "a bucket never runs dry",
    changes: [{ file: "src/server/rate-limits.ts", from: "return tokens < 1 ?", to: "return tokens < -1 ?" }],
    killers: inLive("Q16 whoever asks"),
  },
  {
    rule: "X-19",
    name: "a cursor that leads nowhere begins where there is something",
    changes: [
      {
        file: "src/client/run-events.ts",
        from: "if (first === undefined)\n    throw",
        to: "if (first === null)\n    throw",
      },
      {
        file: "src/client/run-events.ts",
        from: "if (first.seq > after + 1) throw",
        to: "if ((first?.seq ?? 0) < 0) throw",
      },
    ],
    killers: inLive("X-19 a cursor"),
  },
  {
    rule: "X-19",
    name: "a reader that comes back has the last entry twice",
    changes: [
      {
        file: "src/client/run-events.ts",
        from: "let from = after === undefined ? 0 : after + 1;",
        to: "let from = after === undefined ? 0 : after;",
      },
    ],
    killers: inLive("X-19 entries"),
  },
  {
    rule: "Q17",
    name: "browsers are told nothing about what an answer is",
    changes: [{ file: "src/server/app.ts", from: 'headers.set("x-content-type-options", "nosniff");', to: "" }],
    killers: inAttacks("Q17 what is stored"),
  },
  {
    rule: "RF1",
    name: "every refusal of an address is recorded",
    changes: [
      {
        file: "src/server/refusals.ts",
        from: "const isRecorded = this.#perAddress.take(network) === null &&",
        to: "const isRecorded =",
      },
    ],
    killers: inFair("Q16 Q20 over HTTP strangers"),
  },
  {
    rule: "RF1",
    name: "whoever has many addresses fills the audit log",
    changes: [{ file: "src/server/refusals.ts", from: ' && this.#inAll.take("") === null', to: "" }],
    killers: inFair("Q16 Q20 RF1 RF2 a few"),
  },
  {
    rule: "RF2",
    name: "refusals that were counted are forgotten when the server stops",
    changes: [{ file: "src/server/refusals.ts", from: "    await this.#tell();\n", to: "" }],
    killers: inFair("Q16 Q20 over HTTP strangers"),
  },
  {
    rule: "Q16",
    name: "each address of IPv6 has rates of its own",
    changes: [{ file: "src/server/network.ts", from: ".slice(0, 4)", to: ".slice(0, 8)" }],
    killers: inFair("Q16 addresses of one holder"),
  },
  {
    rule: "Q16",
    name: "one store may have all event streams",
    changes: [{ file: "src/server/event-stream.ts", from: "ofStore.length < streamsPerTenant && ", to: "" }],
    killers: inFair("Q16 Q4 one that is at all of its limits"),
  },
  {
    rule: "ES4",
    name: "who has signed out is told of the next event",
    changes: [{ file: "src/server/event-stream.ts", from: " || !this.#ends.isStillIn()) return", to: ") return" }],
    killers: inSession("Q3 ES4 a sign-out"),
  },
  {
    rule: "ES4",
    name: "a stream outlives its session as long as nothing happens",
    changes: [
      {
        file: "src/server/event-stream.ts",
        from: "if (!reader.isStillIn()) stream.dismiss()",
        to: "if (reader.isStillIn()) void stream",
      },
    ],
    killers: inSession("Q3 ES4 a session"),
  },
  {
    rule: "ES4",
    name: "a session that nobody has used for too long goes on for its streams",
    changes: [
      {
        file: "src/server/sessions.ts",
        from: "return session !== undefined && !this.#isIdle(session);",
        to: "return session !== undefined;",
      },
    ],
    killers: inSession("Q3 ES4 a session"),
  },
];
