// A workflow whose money moves in transactions, for processes that are killed and frozen around them.
import { workflow } from "pawl";
import { passGate } from "../crash/gates.mjs";
import { reach } from "../crash/kill-point.mjs";

/** Pays once for each key: a second row for it breaks the table's rule. */
async function payLater(sql, table, who, gate) {
  reach("before-sql");
  await sql.query(`insert into ${table} (who) values ($1)`, [who]);
  reach("after-sql");
  if (gate !== undefined) await passGate(gate);
  const [row] = await sql.query(`select count(*)::int as count from ${table} where who like $1`, [
    `${who.split(" ")[0]} %`,
  ]);
  return row.count;
}

function payNow(sql, table, who) {
  reach("before-sql");
  sql.run(`insert into ${table} (who) values (?)`, who);
  reach("after-sql");
  return sql.get(`select count(*) as count from ${table} where who like ?`, `${who.split(" ")[0]} %`).count;
}

/** Each amount says how many were paid by then; a step runs beside the second. */
export const bank = workflow("bank", async (ctx, { table, gate }) => {
  const pay = (name) => {
    const who = `${ctx.run.id} ${name}`;
    const isLater = table.includes(".");
    return ctx.transaction(
      name,
      isLater ? async (sql) => payLater(sql, table, who, gate) : (sql) => payNow(sql, table, who),
    );
  };
  const first = await pay("first");
  const [second, beside] = await Promise.all([pay("second"), ctx.step("beside", async () => "beside")]);
  return { first, second, beside };
});
