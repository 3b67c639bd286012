import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { plural, zoneText } from "./format.ts";
import { Help } from "./help.tsx";
import { useHereInView } from "./here-in-view.ts";
import { useKeys } from "./keys.ts";
import { Alerts } from "./pages/alerts.tsx";
import { Approvals } from "./pages/approvals.tsx";
import { Audit } from "./pages/audit.tsx";
import { Run } from "./pages/run.tsx";
import { Runs } from "./pages/runs.tsx";
import { Schedules } from "./pages/schedules.tsx";
import { SignIn } from "./pages/sign-in.tsx";
import { Workers } from "./pages/workers.tsx";
import { useRefreshing, useResource } from "./resource.ts";
import { navigate, path } from "./router.ts";
import { may, session, signOut } from "./session.ts";
import { nextTheme, theme } from "./theme.ts";
import { sayFailure, Toasts } from "./toast.tsx";
import type { WireAlerts, WireApprovals } from "./wire.ts";

interface Section {
  readonly href: string;
  readonly name: string;
  /** Behind g. */
  readonly key: string;
  readonly isFor?: () => boolean;
  page(rest: readonly string[]): JSX.Element;
}

/** Its plots are as large as everything else together: they are loaded when somebody wants to see them. */
const metrics = () => import("./pages/metrics.tsx").then(({ Metrics }) => Metrics);

const SECTIONS: readonly Section[] = [
  {
    href: "/runs",
    name: "Runs",
    key: "r",
    page: ([id, tab]) => (id === undefined ? <Runs /> : <Run key={id} id={id} tab={tab} />),
  },
  { href: "/approvals", name: "Approvals", key: "a", page: ([id]) => <Approvals id={id ?? null} /> },
  { href: "/workers", name: "Workers", key: "w", page: () => <Workers /> },
  { href: "/schedules", name: "Schedules", key: "s", page: () => <Schedules /> },
  { href: "/alerts", name: "Alerts", key: "l", page: () => <Alerts /> },
  // The server has its own page at /metrics, for Prometheus.
  { href: "/stats", name: "Metrics", key: "m", page: () => <Later load={metrics} /> },
  { href: "/audit", name: "Audit", key: "u", isFor: () => may("admin"), page: () => <Audit /> },
];

export function App(): JSX.Element {
  if (session.value === undefined) return <p class="loading page">Loading…</p>;
  if (session.value === null) return <SignIn />;
  return <Shell />;
}

function Shell(): JSX.Element {
  const [isHelpOpen, setHelpOpen] = useState(false);
  useKeys({
    ...Object.fromEntries(
      SECTIONS.map(({ href, name, key }) => [
        `g ${key}`,
        { says: `Go to ${name.toLowerCase()}`, act: () => navigate(href) },
      ]),
    ),
    t: { says: "Light, dark, or as the system has it", act: nextTheme },
    "?": { says: "These keys", act: () => setHelpOpen(true) },
  });
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        To the content
      </button>
      <Rail openHelp={() => setHelpOpen(true)} />
      <main id="main" tabIndex={-1}>
        <Page />
        <p class="zone phone-only">Times in {zoneText()}</p>
      </main>
      <Toasts />
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
    </div>
  );
}

function Page(): JSX.Element | null {
  const [, first = "", ...rest] = path.value.split("/").map(decoded);
  useEffect(() => {
    if (first === "") navigate("/runs", { replace: true });
  }, [first]);
  const section = SECTIONS.find(({ href }) => href === `/${first}`);
  useEffect(() => {
    if (section !== undefined) document.title = `${section.name} · Pawl`;
  }, [section]);
  if (section !== undefined) return section.page(rest.filter((part) => part !== ""));
  if (first === "") return null;
  return (
    <div class="page">
      <h1>There is no such page</h1>
      <p class="dim">
        The address may be mistyped, or from another version. <a href="/runs">All runs</a>
      </p>
    </div>
  );
}

/** Anybody can type an address: what is no text is taken as it stands. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function Later({ load }: { load(): Promise<() => JSX.Element> }): JSX.Element {
  const [page, setPage] = useState<JSX.Element | null>(null);
  useEffect(() => {
    load().then((Page) => setPage(<Page />), sayFailure);
  }, [load]);
  return page ?? <p class="loading page">Loading…</p>;
}

function Rail({ openHelp }: { openHelp(): void }): JSX.Element {
  const who = session.value;
  const nav = useHereInView(path.value);
  return (
    <header class="rail">
      <a class="brand" href="/runs" aria-label="Pawl, all runs">
        <Mark />
        <span>Pawl</span>
      </a>
      <nav aria-label="Sections" ref={nav}>
        {SECTIONS.filter(({ isFor }) => isFor === undefined || isFor()).map(({ href, name }) => (
          <NavLink key={href} href={href} name={name}>
            {name === "Approvals" && <OpenApprovals />}
            {name === "Alerts" && <FiringAlerts />}
          </NavLink>
        ))}
      </nav>
      <div class="rail-foot">
        <p class="who" title={`Signed in as ${who?.user}, ${who?.role}`}>
          {who?.store !== "default" && <span class="who-store">{who?.store}</span>}
          <span class="who-user">
            {who?.user} · {who?.role}
          </span>
          <span title={`Times in ${zoneText()}`}>Times in {zoneText()}</span>
        </p>
        <div class="rail-tools">
          <button type="button" class="link" onClick={nextTheme} aria-label={`Colours: ${theme.value}. Change`}>
            {THEME_WORDS[theme.value]}
          </button>
          <button type="button" class="link" onClick={openHelp} aria-label="Keys">
            Keys
          </button>
          <button type="button" class="link" onClick={() => void signOut()}>
            Sign out
          </button>
        </div>
      </div>
    </header>
  );
}

const THEME_WORDS = { system: "Auto", light: "Light", dark: "Dark" } as const;

function NavLink({
  href,
  name,
  children,
}: {
  readonly href: string;
  readonly name: string;
  readonly children: ComponentChildren;
}): JSX.Element {
  const isHere = path.value === href || path.value.startsWith(`${href}/`);
  return (
    <a href={href} aria-current={isHere ? "page" : undefined}>
      {name}
      {children}
    </a>
  );
}

const REFRESH_MS = 20_000;

/** How many questions are open; more than a page of them is "many". */
function OpenApprovals(): JSX.Element | null {
  const { data, reload } = useResource<WireApprovals>("/api/approvals?limit=20");
  useRefreshing(reload, REFRESH_MS);
  const open = data?.approvals.length ?? 0;
  if (open === 0) return null;
  return (
    <span class="badge" title={`${plural(open, "approval")} to decide`}>
      {data?.cursor === null ? open : `${open}+`}
    </span>
  );
}

/** How many alerts nobody has acknowledged. */
function FiringAlerts(): JSX.Element | null {
  const { data, reload } = useResource<WireAlerts>("/api/alerts?status=firing");
  useRefreshing(reload, REFRESH_MS);
  const firing = data?.alerts.length ?? 0;
  if (firing === 0) return null;
  return (
    <span class="badge badge-bad" title={`${plural(firing, "alert")} firing`}>
      {firing}
    </span>
  );
}

function Mark(): JSX.Element {
  return (
    <svg viewBox="0 0 32 32" width="24" height="24" aria-hidden="true" class="mark">
      <g fill="none" stroke="currentColor" stroke-width="2.8" stroke-linejoin="round" stroke-linecap="round">
        <path d="M3 25h6l4-7v7h6l4-7v7h6" />
        <path d="M8 7l11 8" />
      </g>
      <circle class="mark-pin" cx="7" cy="6.4" r="3.2" />
    </svg>
  );
}
