/** A browser sends cookies to all ports of a host: each server of a machine has its own name for them. */
export function cookieName(host: string | undefined): string {
  const [, port] = /:(\d{1,5})$/.exec(host ?? "") ?? [];
  return port === undefined ? "pawl_session" : `pawl_session_${port}`;
}

export function cookieOf(headers: Headers, name: string): string | null {
  for (const part of (headers.get("cookie") ?? "").split(";")) {
    const [key = "", value = ""] = part.split("=", 2);
    if (key.trim() === name && value !== "") return value.trim();
  }
  return null;
}

/** For scripts of no page, and for no page of anybody else's. An empty one ends it. */
export function cookieText(name: string, value: string, isSecure: boolean): string {
  const end = value === "" ? "; Max-Age=0" : "";
  return `${name}=${value}; Path=/; HttpOnly; SameSite=Strict${isSecure ? "; Secure" : ""}${end}`;
}
