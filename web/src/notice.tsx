// What a page says where it has nothing to show: that it loads, that something failed, that there is nothing. Each says what to do next.
import type { ComponentChildren, JSX } from "preact";
import { ApiError } from "./api.ts";
import type { Resource } from "./resource.ts";

export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="notice">
      <p class="notice-title">{title}</p>
      {children !== undefined && <div class="notice-text">{children}</div>}
    </div>
  );
}

function Failure({ error, retry }: { readonly error: Error; retry(): void }): JSX.Element {
  const status = error instanceof ApiError ? error.status : null;
  if (status === 403)
    return <Empty title="Your role does not allow this.">Ask somebody who administers this server.</Empty>;
  return (
    <div class="notice" role="alert">
      <p class="notice-title">{error.message}</p>
      <div class="notice-text">
        <button type="button" onClick={retry}>
          Try again
        </button>
      </div>
    </div>
  );
}

/** What is there of a resource, or why it is not. */
export function Loaded<T>({
  of,
  missing,
  children,
}: {
  readonly of: Resource<T>;
  /** What a 404 means. */
  readonly missing?: ComponentChildren;
  readonly children: (data: T) => ComponentChildren;
}): JSX.Element {
  const { data, error, reload } = of;
  if (error instanceof ApiError && error.status === 404 && missing !== undefined) return <>{missing}</>;
  if (data !== null)
    return (
      <>
        {error !== null && (
          <p class="stale" role="alert">
            {error.message} What is shown may be old.
          </p>
        )}
        {children(data)}
      </>
    );
  if (error !== null) return <Failure error={error} retry={() => void reload()} />;
  return (
    <p class="loading" role="status">
      Loading…
    </p>
  );
}

export function NotAvailable({ what }: { readonly what: string }): JSX.Element {
  return (
    <Empty title={`${what} are not available on this server.`}>
      It runs a version of Pawl, or with settings, that does not serve them.
    </Empty>
  );
}
