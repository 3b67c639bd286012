// Encryption, secrets and redaction: KR1 to KR4 (keys), SS1 to SS3 (rows), RD1 to RD3 (redaction), Q13, Q14.

const KEYS = "src/client/keyring.test.ts";
const RUNS = "test/sealed/sealed-runs.test.ts";
const OPERATORS = "test/sealed/sealed-operators.test.ts";
const SEARCH = "src/client/secret-search.test.ts";
const REDACTION = "test/sealed/redaction.test.ts";

export const sealedMutants = [
  {
    rule: "KR4",
    name: "a value may be moved to another position of its run",
    changes: [
      {
        file: "src/client/keyring.ts",
        from: 'JSON.stringify(["v1", key, this.#tenant, run, seq, field])',
        to: 'JSON.stringify(["v1", key, this.#tenant, run, seq === -1, field])',
      },
    ],
    killers: [{ file: KEYS, title: "Q14 refuses a value at any other place" }],
    alsoKilledBy: [{ file: RUNS, title: "Q14 Q15 I25 two entries swapped" }],
  },
  {
    rule: "KR4",
    name: "a value of one tenant may be put into the store of another",
    changes: [
      {
        file: "src/client/keyring.ts",
        from: "    this.#tenant = tenantOf(options);",
        to: '    this.#tenant = tenantOf({ ...options, tenant: "" });',
      },
    ],
    killers: [{ file: KEYS, title: "Q14 refuses a value at any other place" }],
  },
  {
    rule: "KR2",
    name: "all runs share one key",
    changes: [
      {
        file: "src/client/keyring.ts",
        from: 'const derived = this.#derive(id, "run", run);',
        to: 'const derived = this.#derive(id, "run", "");',
      },
    ],
    killers: [{ file: KEYS, title: "Q14 a value can be opened by hand" }],
  },
  {
    rule: "KR2",
    name: "nonces are made of the place",
    changes: [
      {
        file: "src/client/keyring.ts",
        from: "this.#random(NONCE_BYTES), plain",
        to: "this.#placeOf(this.#current, at).subarray(0, NONCE_BYTES), plain",
      },
    ],
    killers: [{ file: KEYS, title: "Q14 no two values have a nonce in common" }],
  },
  {
    rule: "KR1",
    name: "what is not sealed is read, whatever the options say",
    changes: [{ file: "src/client/keyring.ts", from: "if (this.#refusesPlain) throw", to: "if (false) throw" }],
    killers: [{ file: KEYS, title: "Q14 reads what is older" }],
  },
  {
    rule: "KR3",
    name: "names are sealed with the key that seals values",
    changes: [
      {
        file: "src/client/keyring.ts",
        from: "this.#nameSealer(options.names);",
        to: "this.#nameSealer(this.#current);",
      },
    ],
    killers: [{ file: KEYS, title: "Q14 the same name is the same text" }],
  },
  {
    rule: "Q14",
    name: "a missing key passes for a damaged journal",
    changes: [{ file: "src/core/values.ts", from: '= ["key_missing", "newer_journal"]', to: '= ["newer_journal"]' }],
    killers: [{ file: RUNS, title: "Q14 so is one that comes to a process without any key" }],
  },
  {
    rule: "Q14",
    name: "a run whose key is back waits for somebody to say so",
    changes: [
      {
        file: "src/worker/version-keeper.ts",
        from: "else if (this.#hasKey(wait)) await",
        to: "else if (false) await",
      },
    ],
    killers: [{ file: RUNS, title: "Q14 so is one that comes to a process without any key" }],
  },
  {
    rule: "SS1",
    name: "progress is kept as it is",
    changes: [
      {
        file: "src/client/sealed-store.ts",
        from: '{ progress: seal("progress", progress) }',
        to: "{ progress }",
      },
    ],
    killers: [{ file: RUNS, title: "memory Q14 a run goes on" }],
  },
  {
    rule: "SS1",
    name: "the digest of a start's input is kept as it is",
    changes: [
      {
        file: "src/client/sealed-store.ts",
        from: "digest: this.#keyring.seal(key.digest, digestField(key.space, key.key)),",
        to: "digest: key.digest,",
      },
    ],
    killers: [{ file: RUNS, title: "memory Q14 a run goes on" }],
  },
  {
    rule: "SS2",
    name: "a field that was changed passes for one whose key is missing",
    changes: [
      {
        file: "src/client/sealed-store.ts",
        from: 'return hasCode(error, "key_missing") ? text : `${REFUSED}${text}`;',
        to: "return text;",
      },
    ],
    killers: [{ file: RUNS, title: "Q14 progress, cost and the detail" }],
  },
  {
    rule: "RD1",
    name: "a body sees live what replay does not show it",
    changes: [
      {
        file: "src/core/steps.ts",
        from: "const payload = redactor === null && isPlain(value) ? value",
        to: "const payload = isPlain(value) ? value",
      },
    ],
    killers: [{ file: REDACTION, title: "Q13 what the rules name is in no record on memory" }],
  },
  {
    rule: "RD1",
    name: "a body gets an error that replay does not give it",
    changes: [
      {
        file: "src/core/steps.ts",
        from: 'given.type === "step.failed" ? this.#redacted(given) : given',
        to: "given",
      },
    ],
    killers: [{ file: REDACTION, title: "Q13 what the rules name is in no record on memory" }],
  },
  {
    rule: "Q13",
    name: "notes are not redacted by the rules of their workflow",
    changes: [
      {
        file: "src/core/draft.ts",
        from: "text === null || this.redactor === null ? text : this.redactor.entry(type, key, text);",
        to: "text;",
      },
    ],
    killers: [{ file: REDACTION, title: "Q13 a workflow has rules of its own" }],
  },
  {
    rule: "Q13",
    name: "what does not come through a run is not redacted",
    changes: [
      {
        file: "src/core/redactor.ts",
        from: "seal: (text, at) => codec.seal(clean(text, at), at),",
        to: "seal: (text, at) => codec.seal(at.seq === -2 ? clean(text, at) : text, at),",
      },
    ],
    killers: [{ file: REDACTION, title: "Q13 what comes on a way of its own" }],
  },
  {
    rule: "Q13",
    name: "nobody remembers which secrets were given",
    changes: [
      { file: "src/client/secrets.ts", from: "if (!known.has(value)) search", to: "if (known.has(value)) search" },
    ],
    killers: [{ file: REDACTION, title: "on memory, and its value nowhere" }],
  },
  {
    rule: "Q13",
    name: "a step may have any variable of the environment",
    changes: [
      { file: "src/client/secrets.ts", from: "(names.has(name) ? process.env[name] : null)", to: "process.env[name]" },
    ],
    killers: [{ file: REDACTION, title: "Q13 come from the environment by name" }],
  },
  {
    rule: "Q14",
    name: "the reason of a hold is kept in the clear",
    changes: [
      {
        file: "src/client/sealed-store.ts",
        from: 'why: this.#keyring.seal(hold.why, rowField(run, "hold"))',
        to: "why: hold.why",
      },
    ],
    killers: [{ file: OPERATORS, title: "Q14 Q20 reasons and details" }],
  },
  {
    rule: "Q14",
    name: "what the audit log says of one deed may be put beside another",
    changes: [
      {
        file: "src/client/sealed-store.ts",
        from: "JSON.stringify([field, who, action, subject, from, outcome])",
        to: "JSON.stringify([field, who, subject, from, outcome])",
      },
    ],
    killers: [{ file: OPERATORS, title: "Q14 what is older than the encryption" }],
  },
  {
    rule: "Q14",
    name: "the audit log is checked as it is read, not as it is kept",
    changes: [{ file: "src/client/audit.ts", from: "const store = plainStoreOf(given);", to: "const store = given;" }],
    killers: [{ file: OPERATORS, title: "Q14 Q20 reasons and details" }],
  },
  {
    rule: "Q14",
    name: "a key that only the audit log needs is not counted",
    changes: [
      { file: "src/client/key-usage.ts", from: "useOf(uses, key).audits += 1", to: "useOf(uses, key).audits += 0" },
    ],
    killers: [{ file: OPERATORS, title: "Q14 a key that a hold or the audit log needs" }],
  },
  {
    rule: "Q13",
    name: "a secret is not found in the middle of a base64 text",
    changes: [{ file: "src/client/secret-forms.ts", from: "return [0, 1, 2].flatMap(", to: "return [0].flatMap(" }],
    killers: [{ file: SEARCH, title: "Q13 finds one in base64" }],
    alsoKilledBy: [{ file: REDACTION, title: "Q13 one that is not ASCII" }],
  },
  {
    rule: "Q13",
    name: "characters of base64 that have some bits of a secret stay",
    changes: [{ file: "src/client/secret-forms.ts", from: "after: bits % 6 === 0 ? 0 : 1", to: "after: 0" }],
    killers: [{ file: SEARCH, title: "Q13 finds one in base64" }],
  },
  {
    rule: "Q13",
    name: "bytes are looked through for the characters of a secret, not for its bytes",
    changes: [{ file: "src/client/secret-forms.ts", from: '    texts.add(bytes.toString("latin1"));\n', to: "" }],
    killers: [{ file: REDACTION, title: "Q13 one that is not ASCII" }],
  },
  {
    rule: "SE1",
    name: "what is left of a secret behind another one stays",
    changes: [
      {
        file: "src/client/secret-search.ts",
        from: "last[1] = Math.max(last[1], end)",
        to: "last[1] = last[1] + 0 * end",
      },
    ],
    killers: [{ file: SEARCH, title: "SE1 SE2 finds what" }],
  },
  {
    rule: "SE2",
    name: "the window of the search moves one character too far",
    changes: [{ file: "src/client/secret-search.ts", from: "window - 1 - end)", to: "window - end)" }],
    killers: [{ file: SEARCH, title: "SE1 SE2 finds what" }],
  },
];
