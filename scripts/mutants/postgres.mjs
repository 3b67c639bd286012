// What only holds between transactions: the PostgreSQL store.

const RACES = "test/postgres/concurrency.test.ts";
const CASES = "test/stores.test.ts";
const FUNCTIONS = "src/stores/postgres";

/** A case of the port, on PostgreSQL. */
const inCase = (title) => [{ file: CASES, title: `PostgreSQL store ${title}` }];
const inRace = (title) => [{ file: RACES, title }];

export const postgresMutants = [
  {
    rule: "P15",
    name: "a commit goes to whatever server answers (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "lane = p_lane and server = pg_postmaster_start_time() for key share",
        to: "lane = p_lane for key share",
      },
    ],
    killers: inRace("P15 I8"),
  },
  {
    rule: "P15",
    name: "claims are made on whatever server answers (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/claim-functions.ts`,
        from: "lane = -1 and server = pg_postmaster_start_time() for key share",
        to: "lane = -1 for key share",
      },
    ],
    killers: inRace("P15 I8"),
  },
  {
    rule: "P15",
    name: "a lease is renewed on whatever server answers (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/worker-functions.ts`,
        from: "lane = ${CLAIMS_LANE} and server = pg_postmaster_start_time());",
        to: "lane = ${CLAIMS_LANE});",
      },
    ],
    killers: inRace("P15 I8"),
  },
  {
    rule: "P15",
    name: "entries are written wherever a batch says, not at the head (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: " or r.has_ended or v_head <> (p_part ->> 'head')::bigint then",
        to: " or r.has_ended then",
      },
    ],
    killers: inCase("P15 ST2"),
  },
  {
    rule: "P17",
    name: "an entry whose position is taken is passed over in silence (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "        where numbers[e.part] is not null;\n",
        to: "        where numbers[e.part] is not null on conflict do nothing;\n",
      },
    ],
    killers: inRace("P15 P16 P17"),
  },
  {
    rule: "P17",
    name: "a commit whose answer was lost counts as not applied (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/link.ts`,
        from: "return this.#ask(text, values, lostAnswer, bytes);",
        to: "return this.#ask(text, values, text === '' ? lostAnswer : unavailable, bytes);",
      },
    ],
    killers: [{ file: "test/postgres/failures.test.ts", title: "P17 B30 I1 I6 at any commit .lose answer" }],
  },
  {
    rule: "P17",
    name: "who fences itself leaves its runs behind (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/worker-functions.ts`,
        from: "      update ${s}.runs set owner = p_successor ->> 'id' where owner = any (v_workers);\n",
        to: "",
      },
    ],
    killers: inCase("P17"),
  },
  {
    rule: "P17",
    name: "who fences itself leaves its old row behind (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/worker-functions.ts`,
        from: "      delete from ${s}.workers where id = any (v_workers);\n",
        to: "      delete from ${s}.workers where id = any (v_workers) and p_successor is null;\n",
      },
    ],
    killers: inCase("P17"),
  },
  {
    rule: "P16",
    name: "a part that breaks a rule takes its neighbours with it (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit.ts`,
        from: "    for (const part of parts) verdicts.push(await commitAlone(to, writer, part));\n",
        to: `    for (const part of parts) {
      const isAlone = parts.length === 1;
      verdicts.push(isAlone ? await commitAlone(to, writer, part) : { run: part.run, kind: "failed", error });
    }
`,
      },
    ],
    killers: inRace("P16"),
  },
  {
    rule: "P18",
    name: "a message does not raise the counter (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/mail-functions.ts`,
        from: "set wake = wake + 1, unread = greatest(unread, 0) + 1,",
        to: "set unread = greatest(unread, 0) + 1,",
      },
    ],
    killers: inCase("P18"),
  },
  {
    rule: "P18",
    name: "the store takes a suspension whatever the counter says (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "if p_part ? 'ifWake' and (p_part ->> 'ifWake')::bigint <> coalesce(r.wake, 0) then",
        to: "if p_part ? 'ifWake' and (p_part ->> 'ifWake')::bigint < 0 then",
      },
    ],
    killers: inCase("P18"),
  },
  {
    rule: "P18",
    name: "a message does not make a run that waits claimable (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/mail-functions.ts`,
        from: "else state <> 'accepted' end)",
        to: "else false end)",
      },
    ],
    killers: inCase("P18"),
  },
  {
    rule: "P18",
    name: "the counter of a suspension is looked at without holding the run (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "into r from ${s}.runs where id = v_run for no key update;",
        to: "into r from ${s}.runs where id = v_run;",
      },
    ],
    killers: inRace("P18"),
  },
  {
    rule: "P19",
    name: "a plain end holds although a cancel was accepted before it (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "from p_worker and wake = 0 and cancel is null",
        to: "from p_worker and wake >= 0",
      },
    ],
    killers: inCase("P19 I16 an end that names its whole row"),
  },
  {
    rule: "P20",
    name: "fencing releases the runs of a worker and leaves its fence (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/worker-functions.ts`,
        from: "      delete from ${s}.fences where worker = any (v_workers);\n",
        to: "",
      },
    ],
    killers: inCase("I8 P21 ST1"),
  },
  {
    rule: "P20",
    name: "runs are released first, and their worker fenced after that (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/worker-functions.ts`,
        from: "      delete from ${s}.fences where worker = any (v_workers);\n      delete from ${s}.workers where id = any (v_workers);\n      if p_successor is null then return ${s}.release_1(v_workers, ${s}.time_1(p_now), false); end if;\n",
        to: `      if p_successor is null then
        v_released := \${s}.release_1(v_workers, \${s}.time_1(p_now), false);
        delete from \${s}.fences where worker = any (v_workers);
        delete from \${s}.workers where id = any (v_workers);
        return v_released;
      end if;
      delete from \${s}.fences where worker = any (v_workers);
      delete from \${s}.workers where id = any (v_workers);
`,
      },
      {
        file: `${FUNCTIONS}/worker-functions.ts`,
        from: "      v_workers text[] := p_workers;\n",
        to: "      v_workers text[] := p_workers;\n      v_released bigint;\n",
      },
    ],
    killers: inRace("P20"),
  },
  {
    rule: "I9",
    name: "a worker that was found silent is fenced though it was heard of since (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/worker-functions.ts`,
        from: "where id is null or renewed_at + lease_ms < ${s}.time_1(p_lease);",
        to: "where id is null or lease_ms is not null;",
      },
    ],
    killers: inCase("I9 B18"),
  },
  {
    rule: "P21",
    name: "a commit looks at its fence without holding it (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "server = pg_postmaster_start_time() for key share;\n        if not found then return null; end if;",
        to: "server = pg_postmaster_start_time();\n        if not found then return null; end if;",
      },
    ],
    killers: inRace("P21 I8 ST1"),
  },
  {
    rule: "P21",
    name: "a claim looks at its fence without holding it (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/claim-functions.ts`,
        from: "server = pg_postmaster_start_time() for key share) is true`",
        to: "server = pg_postmaster_start_time()) is true`",
      },
    ],
    killers: inRace("P21"),
  },
  {
    rule: "P21",
    name: "a commit of a fenced worker is applied (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "        if not found then return null; end if;\n      end if;\n      v_now",
        to: "      end if;\n      v_now",
      },
    ],
    killers: inCase("I8 P21 ST1"),
  },
  {
    rule: "P21",
    name: "a fenced worker still takes runs (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/claim-functions.ts`,
        from: "      if not ${HOLDS_FENCE(s)} then return null; end if;\n",
        to: "",
      },
    ],
    killers: inCase("I8 P21 ST1"),
  },
  {
    rule: "P21",
    name: "heartbeats hold the row that commits wait for (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/worker-functions.ts`,
        from: "      update ${s}.workers set renewed_at = ${s}.time_1",
        to: "      perform 1 from ${s}.fences where worker = p_worker for update;\n      update ${s}.workers set renewed_at = ${s}.time_1",
      },
    ],
    killers: inRace("P21 heartbeats"),
  },
  {
    rule: "P22",
    name: "fencing waits for a commit that hangs (PostgreSQL)",
    changes: [
      { file: `${FUNCTIONS}/worker-functions.ts`, from: `const LOCK_LIMIT = "2s";`, to: `const LOCK_LIMIT = "0";` },
    ],
    killers: inRace("P22"),
  },
  {
    rule: "P23",
    name: "what a worker owns is what has mail for it (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/workers.ts`,
        from: `mailQuery(this.#s, "owner = $1"), worker)`,
        to: `mailQuery(this.#s, "owner = $1 and unread > 0"), worker)`,
      },
    ],
    killers: [...inCase("P17"), ...inCase("P23")],
  },
  {
    rule: "P23",
    name: "after a claim whose answer was lost nobody looks for what it has brought (PostgreSQL)",
    changes: [
      {
        file: "src/worker/claims.ts",
        from: `if (!hasCode(error, "storage_unavailable")) this.#ports.unknown();`,
        to: `if (hasCode(error, "invalid_argument")) this.#ports.unknown();`,
      },
      {
        file: "src/worker/worker.ts",
        from: "      beat: () => this.#compareWithStore(),\n",
        to: "      beat: async () => {},\n",
      },
    ],
    killers: [{ file: "test/postgres/failures.test.ts", title: "P23" }],
  },
  {
    rule: "P24",
    name: "the runs of a commit are locked as they come (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "      if p_locks is not null then\n",
        to: "      if p_locks is not null and p_lane < 0 then\n",
      },
    ],
    killers: inRace("P24"),
  },
  {
    rule: "P24",
    name: "parts of a commit that concern each other are done all at once (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit.ts`,
        from: "  if (!isSpeaking) return false;\n",
        to: "  if (!isSpeaking || parts.length > 0) return false;\n",
      },
    ],
    killers: inCase("P24 P19"),
  },
  {
    rule: "P24",
    name: "messages go out before the run that sends them has let go (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "      if v_row is not null or p_part ? 'cancelling' then\n",
        to: `      for x in select jsonb_array_elements(p_part -> 'messages') loop
        perform \${s}.deliver_1(x ->> 'to', x ->> 'id', x ->> 'kind', x ->> 'name', v_data[(x ->> 'value')::int],
          v_bytes[(x ->> 'value')::int], p_now);
      end loop;
      if v_row is not null or p_part ? 'cancelling' then
`,
      },
    ],
    killers: inCase("P24"),
  },
  {
    rule: "P24",
    name: "changes of one counter are judged one by one (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "(v_by > 0 and v_amount > v_max)",
        to: "(v_by > v_max)",
      },
    ],
    killers: [...inCase("P24 changes"), ...inCase("I18")],
  },
  {
    rule: "P5",
    name: "a message can be used up twice (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "(select count(*) from ${s}.inbox where run = v_n and not consumed\n",
        to: "(select count(*) from ${s}.inbox where run = v_n\n",
      },
    ],
    killers: inCase("P5"),
  },
  {
    rule: "P28",
    name: "deaths before a recorded outcome are counted after it (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/worker-functions.ts`,
        from: "case when p_handed_back or ${hasProgressed(s)} then 0 else claims end",
        to: "case when p_handed_back or (false and ${hasProgressed(s)}) then 0 else claims end",
      },
    ],
    killers: inCase("P28"),
  },
  {
    rule: "P34",
    name: "an older patch claims runs of a newer one (PostgreSQL)",
    changes: [
      {
        file: "src/stores/version-line.ts",
        from: "runs.line and runs.patch <= ${handle}.patch",
        to: "runs.line and runs.patch is not null",
      },
    ],
    killers: inCase("P34"),
  },
  {
    rule: "P29",
    name: "time stands still in a transaction that waits (PostgreSQL)",
    changes: [{ file: `${FUNCTIONS}/time-functions.ts`, from: "epoch from clock_timestamp()", to: "epoch from now()" }],
    killers: inRace("P29"),
  },
  {
    rule: "P29",
    name: "a worker believes its own clock, not the database's (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/store-clock.ts`,
        from: "this.#offsetMs = Math.round(time - (sentAt + roundTripMs / 2));",
        to: "this.#offsetMs = Math.round(Math.min(0, time) - Math.min(0, sentAt));",
      },
    ],
    killers: [{ file: "test/postgres/clock.test.ts" }],
  },
  {
    rule: "P29",
    name: "a lease is counted on the clock of the worker (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/postgres-store.ts`,
        from: "(leaseClock === systemClock ? null : leaseClock.monotonic())",
        to: "(leaseClock === systemClock ? Date.now() : leaseClock.monotonic())",
      },
    ],
    killers: [{ file: "test/postgres/clock.test.ts" }],
  },
  {
    rule: "D6",
    name: "two runs can be started with one key (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/commit-functions.ts`,
        from: "            and (select id from ${s}.runs where n = held.run) = x ->> 'from';\n",
        to: "            and (x ->> 'from') is not distinct from (x ->> 'from');\n",
      },
    ],
    killers: inCase("I17 B27"),
  },
  {
    rule: "D6",
    name: "whatever is on the list of orphans is made claimable, though it may be none by now (PostgreSQL)",
    changes: [
      {
        file: `${FUNCTIONS}/upkeep-functions.ts`,
        from: "where id = any (p_runs) and ((${isForsaken(s)}) or (${isForgotten(s)}) or (${isLate(s)})) returning 1",
        to: "where id = any (p_runs) returning 1",
      },
    ],
    killers: inCase("B18"),
  },
];
