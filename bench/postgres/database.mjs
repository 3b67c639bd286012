// What the scenarios need of the server beside the store.
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";

let schemas = 0;

/** Calls `body` with a client and the name of a schema, which goes when it ends. */
export async function withSchema(url, body) {
  const schema = `bench_${process.pid}_${++schemas}`;
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await body({ client, schema });
  } finally {
    await client.query(`drop schema if exists "${schema}" cascade`);
    await client.end();
  }
}

export async function numberOf(client, text) {
  const { rows } = await client.query(text);
  return Number(Object.values(rows[0])[0]);
}

/** CPU seconds that the processes of the server have used so far, with those that have ended; null where nobody can tell. */
export function serverCpu() {
  if (process.platform !== "linux") return null;
  const ticks = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => statOf(pid))
    .filter((stat) => stat?.name === "postgres")
    .reduce((sum, stat) => sum + stat.ticks, 0);
  return ticks / 100;
}

function statOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const end = text.lastIndexOf(")");
    const fields = text.slice(end + 2).split(" ");
    return { name: text.slice(text.indexOf("(") + 1, end), ticks: Number(fields[11]) + Number(fields[12]) };
  } catch {
    return null;
  }
}
