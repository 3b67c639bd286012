// Requests to the API. Every answer is JSON; every refusal becomes an `ApiError` with the server's own code and words.
import { endSession, session } from "./session.ts";

export class ApiError extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

export function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return request("GET", path, undefined, signal);
}

export function post<T>(path: string, body: object = {}): Promise<T> {
  return request("POST", path, body);
}

async function request<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
  const response = await fetch(path, {
    method,
    headers: {
      accept: "application/json",
      ...(body !== undefined && { "content-type": "application/json", "x-pawl-csrf": session.value?.csrf ?? "" }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal !== undefined && { signal }),
  }).catch((error: unknown) => {
    if (signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "The server does not answer. Is it still running?");
  });
  if (response.status === 401) endSession();
  if (!response.ok) throw await refusal(response);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function refusal(response: Response): Promise<ApiError> {
  const { error } = (await response.json().catch(() => ({}))) as { error?: { code?: string; message?: string } };
  return new ApiError(
    response.status,
    error?.code ?? "unknown",
    error?.message ?? `The server answered ${response.status}.`,
  );
}

/** A path with those of the parameters that are set. */
export function withQuery(path: string, query: Readonly<Record<string, string | number | null | undefined>>): string {
  const set = Object.entries(query).filter(([, value]) => value !== null && value !== undefined && value !== "");
  if (set.length === 0) return path;
  return `${path}?${new URLSearchParams(set.map(([name, value]) => [name, String(value)]))}`;
}

/** What went wrong, in words. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
