import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { get, messageOf, withQuery } from "../api.ts";
import { clockTime, fullTime, oneLine } from "../format.ts";
import { Empty, Loaded, NotAvailable } from "../notice.tsx";
import { useResource } from "../resource.ts";
import { Word } from "../status.tsx";
import { sayFailure } from "../toast.tsx";
import type { WireAudit } from "../wire.ts";

export function Audit(): JSX.Element {
  const log = useResource<WireAudit>("/api/audit");
  const [isPaging, setPaging] = useState(false);
  const more = async (cursor: number) => {
    setPaging(true);
    try {
      const next = await get<WireAudit>(withQuery("/api/audit", { cursor }));
      log.set(({ records }) => ({ records: [...records, ...next.records], cursor: next.cursor }));
    } catch (error) {
      sayFailure(messageOf(error));
    }
    setPaging(false);
  };
  return (
    <div class="page">
      <div class="page-head">
        <h1>Audit</h1>
      </div>
      <Loaded of={log} missing={<NotAvailable what="Audit records" />}>
        {({ records, cursor }) => (
          <>
            {records.length === 0 ? (
              <Empty title="Nobody has decided anything yet.">
                Every decision is recorded here, with who and from where.
              </Empty>
            ) : (
              <table class="list stack">
                <thead>
                  <tr>
                    <th class="num">When</th>
                    <th>Who</th>
                    <th>What</th>
                    <th>To what</th>
                    <th>Outcome</th>
                    <th>From</th>
                  </tr>
                </thead>
                <tbody>
                  {records.map((one) => (
                    <tr key={one.n}>
                      <td class="num" title={fullTime(one.at)}>
                        {clockTime(one.at)}
                      </td>
                      <td data-name="Who">{one.who}</td>
                      <td data-name="What">{one.action}</td>
                      <td data-name="To what" class="mono wrap">
                        {one.subject}
                      </td>
                      <td data-name="Outcome">
                        <Word word={one.outcome} />
                      </td>
                      <td data-name="From" class="dim wrap">
                        {oneLine(one.from ?? "", 80)}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
            {cursor !== null && (
              <div class="list-foot">
                <span />
                <button type="button" disabled={isPaging} onClick={() => void more(cursor)}>
                  Show more
                </button>
              </div>
            )}
          </>
        )}
      </Loaded>
    </div>
  );
}
