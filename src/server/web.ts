// The dashboard's files: read once, found by their exact path. A path of a request never becomes one of the disk.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";

export interface Web {
  /** The file of this path; the page itself for any other path that a browser wants to see. */
  find(path: string, headers: Headers): Response | null;
}

interface Asset {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly type: string;
  readonly etag: string;
}

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json; charset=utf-8",
  ".webmanifest": "application/manifest+json",
  ".woff2": "font/woff2",
  ".txt": "text/plain; charset=utf-8",
};

const MISSING =
  '<!doctype html><html lang="en"><meta charset="utf-8"><title>Pawl</title><h1>Pawl</h1>' +
  "<p>The server is running; its dashboard has not been built. Build it with <code>npm run build</code>, then start the server again.</p>" +
  "<p>The HTTP API is there: <code>/api/openapi.json</code> describes it.</p></html>\n";

/** The built dashboard: beside the built server, or in `dist` beside the sources. */
function ownFolder(): string | null {
  const candidates = ["../web", "../../dist/web"].map((path) => fileURLToPath(new URL(path, import.meta.url)));
  return candidates.find((folder) => existsSync(join(folder, "index.html"))) ?? null;
}

export function webOf(folder: string | null | undefined): Web {
  if (folder === null) return { find: () => null };
  const found = folder ?? ownFolder();
  const assets = found === null ? new Map<string, Asset>() : readAssets(found);
  const page = assets.get("/index.html") ?? assetOf(".html", Buffer.from(MISSING));
  return {
    find(path, headers) {
      const asset = assets.get(path);
      if (asset !== undefined && path !== "/index.html") return answer(asset, headers, cachingOf(path));
      const isPage = !path.startsWith("/api/") && (headers.get("accept") ?? "").includes("text/html");
      return isPage || path === "/" ? answer(page, headers, "no-cache") : null;
    },
  };
}

/** A name with a hash of its content never means anything else. */
function cachingOf(path: string): string {
  return /[-.][\w-]{8,}\.\w+$/.test(path) ? "public, max-age=31536000, immutable" : "no-cache";
}

function readAssets(folder: string): Map<string, Asset> {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return new Map(
    files.map(({ name, parentPath }) => {
      const path = join(parentPath, name);
      const address = path.slice(join(folder, sep).length).split(sep).join("/");
      return [`/${address}`, assetOf(extname(name), readFileSync(path))];
    }),
  );
}

function assetOf(extension: string, bytes: Buffer): Asset {
  const type = TYPES[extension.toLowerCase()] ?? "application/octet-stream";
  const etag = `"${createHash("sha256").update(bytes).digest("hex").slice(0, 32)}"`;
  return { bytes: new Uint8Array(bytes), type, etag };
}

function answer({ bytes, type, etag }: Asset, headers: Headers, caching: string): Response {
  const isKnown = headers.get("if-none-match") === etag;
  return new Response(isKnown ? null : bytes, {
    status: isKnown ? 304 : 200,
    headers: { "content-type": type, etag, "cache-control": caching },
  });
}
