// Encryption, secrets and redaction: KR1 to KR4 (keys), SS1 to SS3 (rows), RD1 to RD3 (redaction), Q13, Q14.

const KEYS = "src/client/keyring.test.ts";
const RUNS = "test/sealed/sealed-runs.test.ts";
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
    changes: [{ file: "src/client/secrets.ts", from: "        remember(values, value);\n", to: "" }],
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
];
