// Writes a PostgreSQL store as plain SQL that any client can run, `pg` alone included: the statements that made its schema, word for word, and the
// rows of its tables. pg_dump would need to be installed, and writes what only psql can read.
import { migrate } from "../../dist/stores/postgres/migrate.js";

const CHANGES_NO_SCHEMA = /^\s*(begin|commit|rollback|select|set|insert)\b/i;

/** Makes the schema, and gives the statements that did. */
export async function makeSchema(client, schema) {
  const statements = [];
  const recording = {
    query(query) {
      if (!CHANGES_NO_SCHEMA.test(query.text)) statements.push(`${query.text.trim().replace(/;$/, "")};`);
      return client.query(query);
    },
  };
  await migrate(recording, schema);
  return statements;
}

/** The rows of all tables, one a line, and where sequences stand. */
export async function dumpRows(client, schema) {
  await client.query("set timezone = 'UTC'");
  // A partition's rows are those of its parent; a default comes with the schema.
  const tables = await rowsOf(
    client,
    `select quote_ident(relname) as name from pg_class where relnamespace = $1::regnamespace
    and relkind in ('r', 'p') and not relispartition order by relname`,
    [schema],
  );
  const inserts = [];
  for (const { name } of tables) inserts.push(...(await dumpTable(client, `${schema}.${name}`)));
  const sequences = await rowsOf(
    client,
    `select format('select setval(%L, %s);', quote_ident(schemaname) || '.' || quote_ident(sequencename),
    last_value) as text from pg_sequences where quote_ident(schemaname) = trim('"' from $1) and last_value is not null`,
    [schema],
  );
  return [...inserts, ...sequences.map(({ text }) => text)];
}

async function dumpTable(client, table) {
  const columns = (
    await rowsOf(
      client,
      `select quote_ident(attname) as name from pg_attribute where attrelid = $1::regclass
    and attnum > 0 and not attisdropped order by attnum`,
      [table],
    )
  ).map(({ name }) => name);
  const row = columns.map((name) => `quote_nullable(${name}::text)`).join(", ");
  const rows = await rowsOf(
    client,
    `select concat_ws(', ', ${row}) as text from ${table} order by ${columns.slice(0, 2).join(", ")}`,
  );
  if (rows.length === 0) return [];
  return [
    `insert into ${table} (${columns.join(", ")}) values`,
    ...rows.map(({ text }, i) => `  (${text})${i < rows.length - 1 ? "," : ";"}`),
  ];
}

async function rowsOf(client, text, values = []) {
  return (await client.query({ text, values })).rows;
}
