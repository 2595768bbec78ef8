// The frame of every page: navigation, gateway status, and sign-out.
import { useEffect, useRef, useState } from "preact/hooks";
import { html } from "htm/preact";
import { useQuery } from "./use-query.ts";
import { Select } from "./parts/fields.ts";
import { icon, type IconName } from "./parts/icons.ts";
import { EmptyState, Badge, NoteBox } from "./parts/basics.ts";
import { Toasts } from "./parts/overlay.ts";
import { buildUrl, handleLinkClick, navigate, useLocation } from "./location.ts";
import { isAllowed, closeSession, type Principal, theme, type Theme } from "./session.ts";
import { formatDateTime } from "./format.ts";
import type { ComponentType } from "preact";
import { PlaygroundPage } from "./pages/playground/playground.ts";
import { RealtimePage } from "./pages/playground/realtime.ts";
import { OverviewPage } from "./pages/overview/overview.ts";
import { UsagePage } from "./pages/usage/usage.ts";
import { RequestsPage } from "./pages/requests/requests.ts";
import { AdminsPage } from "./pages/admins.ts";
import { AuditPage } from "./pages/audit.ts";
import { BILL_COMMANDS, BillsPage } from "./pages/bills.ts";
import { CachesPage } from "./pages/caches.ts";
import { ScopesPage } from "./pages/scopes.ts";
import { ConfigResponse } from "./pages/config.ts";
import { FleetPage } from "./pages/fleet.ts";
import { KeysPage } from "./pages/keys/keys.ts";
import { MCP_COMMANDS, McpPage } from "./pages/mcp.ts";
import { LedgerPage } from "./pages/ledger/ledger.ts";
import { ModelsPage } from "./pages/models/models.ts";
import { ProvidersPage } from "./pages/providers/providers.ts";
import { RoutingPage } from "./pages/routing.ts";
import { JobsPage } from "./pages/jobs.ts";
import { SocketsPage } from "./pages/sockets.ts";

const GROUPS = ["Watch", "Serve", "Govern"] as const;

const pageForPath = (path: string): PageDefinition | undefined =>
  PAGES.find((page) => page.path === path) ??
  PAGES.find((page) => page.path !== "/" && path.startsWith(`${page.path}/`));

export function Shell({ self, left: onSignedOut }: { self: Principal; left: () => void }) {
  const { path } = useLocation();
  const [open, show] = useState(false);
  const main = useRef<HTMLElement>(null);
  const own = permittedPages();
  const page = pageForPath(path);
  const mine = page !== undefined && own.includes(page);
  const first = useRef(true);
  // If the reader may not open the overview, the first permitted page is the home page.
  useEffect(() => {
    if (path === "/" && !mine && own[0]) navigate(buildUrl(own[0].path), true);
  }, [path]);
  useEffect(() => {
    document.title = `${page?.title ?? "Page not found"} · Tollgate`;
    show(false);
    // Moves the focus, so that screen readers announce the new page. The first page is announced
    // without this.
    if (first.current) first.current = false;
    else main.current?.focus();
    scrollTo(0, 0);
  }, [page?.path]);
  const aside = (event: MouseEvent) => {
    if (open && !(event.target as Element).closest(".side, .menu")) show(false);
  };
  const escape = (event: KeyboardEvent) => event.key === "Escape" && show(false);
  return html`<div
    class="shell ${open ? "open" : ""}"
    onClick=${(event: MouseEvent) => (aside(event), handleLinkClick(event))}
    onKeyDown=${escape}
  >
    <a class="skip" href="#page">Skip to the page</a>
    <aside class="side" aria-label="Console">
      <a class="brand" href=${buildUrl("/")}>${icon("gate")}<span>Tollgate</span></a>
      <nav aria-label="Pages" id="pages">
        ${GROUPS.filter((group) => own.some((each) => each.group === group)).map(
          (group) =>
            html`<div key=${group}>
              <h2>${group}</h2>
              ${own.filter((each) => each.group === group).map((each) => html`<a key=${each.path} href=${buildUrl(each.path)} aria-current=${each === page ? "page" : undefined}>${icon(each.icon)}${each.title}</a>`)}
            </div>`,
        )}
      </nav>
      <footer><${Foot} self=${self} left=${onSignedOut} /></footer>
    </aside>
    <div>
      <header class="bar">
        <button
          type="button"
          class="button bare menu"
          aria-label="Pages"
          aria-expanded=${open ? "true" : "false"}
          aria-controls="pages"
          onClick=${() => show(!open)}
        >
          ${icon("menu")}
        </button>
        <h1 class="grow">${page?.title ?? "Nothing here"}</h1>
        <${GatewayStateMark} />
      </header>
      <main class="page" id="page" ref=${main} tabindex="-1" aria-label=${page?.title}>
        <${LedgerOutage} />
        ${
          mine
            ? html`<${page.component} key=${page.path} rest=${path.slice(page.path.length + 1)} />`
            : html`<${EmptyState} of="search"
                ><p>${page ? noPermissionText(page, self) : "Page not found."}</p>
                ${own[0] && html`<a class="button" href=${buildUrl(own[0].path)}>${own[0].title}</a>`}<//
              >`
        }
      </main>
    </div>
    <${Toasts} />
  </div>`;
}

const noPermissionText = ({ title }: PageDefinition, { role, account }: Principal): string =>
  account
    ? `${title} covers the whole gateway. You are signed in for the account ${account} only.`
    : `${title} requires a higher role than yours (${role}).`;

/** Shown on every page while the ledger accepts no rows. */
function LedgerOutage() {
  const { value } = useQuery<StatusResponse>("status", {}, { intervalMs: 5_000 });
  if (value?.state !== "ledger_unavailable") return null;
  const { reason, since } = value.ledgerOutage ?? {};
  return html`<div role="alert">
    <${NoteBox} tone="bad"
      ><p>
        <strong class="strong">The ledger is unavailable</strong
        >${since && ` since ${formatDateTime(since)}`}. New requests are rejected until the store
        responds. Pages show the last data that they received.
      </p>
      ${reason && html`<p class="quiet break">${reason}</p>`}<//
    >
  </div>`;
}

interface StatusResponse {
  readonly state: string;
  readonly ledgerOutage?: { readonly reason?: string; readonly since?: number };
  readonly version: string;
  readonly generation: number;
  readonly lastReload?: { ok: boolean };
}

const STATE_LABELS: Readonly<Record<string, string>> = { ledger_unavailable: "ledger unavailable" };

function GatewayStateMark() {
  const { value, error } = useQuery<StatusResponse>("status", {}, { intervalMs: 5_000 });
  if (!isAllowed("status")) return null;
  if (error)
    return html`<span role="status"
      ><${Badge} tone="bad">${error.status === 0 ? "not reachable" : "no answer"}<//></span
    >`;
  if (!value) return null;
  return html`<span class="row" role="status">
    <${Badge} tone=${value.state === "ready" ? "good" : "warn"}
      >${STATE_LABELS[value.state] ?? value.state}<//
    >
    ${value.lastReload?.ok === false && html`<${Badge} tone="bad">last reload failed<//>`}
    <span class="small faint nowrap" title="Config generation that serves requests"
      >config ${value.generation}</span
    >
  </span>`;
}

function Foot({ self, left }: { self: Principal; left: () => void }) {
  const [chosen, choose] = useState<Theme>(theme.get());
  const out = () =>
    void closeSession()
      .catch(() => {})
      .then(left);
  const set = (to: string) => {
    choose(to as Theme);
    theme.set(to as Theme);
  };
  return html`<div class="row">
      <span class="grow break"
        ><span class="strong">${self.name}</span><br /><span class="faint"
          >${self.role}${self.account ? `, account ${self.account}` : ""}</span
        ></span
      >
      <button
        type="button"
        class="button bare"
        onClick=${out}
        aria-label="Sign out"
        title="Sign out"
      >
        ${icon("out")}
      </button>
    </div>
    <${Select}
      hidesLabel=${true}
      name="Theme"
      value=${chosen}
      set=${set}
      options=${[
        ["system", "System theme"],
        ["light", "Light theme"],
        ["dark", "Dark theme"],
      ]}
    />`;
}

// All pages of the console, in the order of the navigation.

interface PageDefinition {
  /** Path such as "/usage". The page itself handles the paths below it. */
  readonly path: string;
  readonly title: string;
  readonly group: "Watch" | "Serve" | "Govern";
  readonly icon: IconName;
  /** Commands that the page requires. The page is hidden from readers who may not run them. */
  readonly requiredCommands: readonly string[];
  /** The page. `rest` is the URL below `path`: "", "0k3f…". */
  readonly component: ComponentType<{ rest: string }>;
}

const PAGES: readonly PageDefinition[] = [
  {
    path: "/",
    title: "Overview",
    group: "Watch",
    icon: "overview",
    component: OverviewPage,
    requiredCommands: ["requests.series", "attention"],
  },
  {
    path: "/usage",
    title: "Usage",
    group: "Watch",
    icon: "usage",
    component: UsagePage,
    requiredCommands: ["ledger.totals", "usage.series"],
  },
  {
    path: "/requests",
    title: "Requests",
    group: "Watch",
    icon: "requests",
    component: RequestsPage,
    requiredCommands: ["requests.list", "requests.search"],
  },
  {
    path: "/sockets",
    title: "WebSockets",
    group: "Watch",
    icon: "sockets",
    component: SocketsPage,
    requiredCommands: ["sockets.list"],
  },
  {
    path: "/jobs",
    title: "Jobs",
    group: "Watch",
    icon: "jobs",
    component: JobsPage,
    requiredCommands: ["jobs.list"],
  },
  {
    path: "/models",
    title: "Models",
    group: "Serve",
    icon: "models",
    component: ModelsPage,
    requiredCommands: ["models.list"],
  },
  {
    path: "/providers",
    title: "Providers",
    group: "Serve",
    icon: "providers",
    component: ProvidersPage,
    requiredCommands: ["providers.list"],
  },
  {
    path: "/mcp",
    title: "MCP",
    group: "Serve",
    icon: "tools",
    component: McpPage,
    requiredCommands: Object.values(MCP_COMMANDS),
  },
  {
    path: "/routing",
    title: "Routing",
    group: "Serve",
    icon: "routing",
    component: RoutingPage,
    requiredCommands: ["explain"],
  },
  {
    path: "/playground",
    title: "Playground",
    group: "Serve",
    icon: "playground",
    component: PlaygroundPage,
    requiredCommands: ["models.list"],
  },
  {
    path: "/realtime",
    title: "Realtime playground",
    group: "Serve",
    icon: "microphone",
    component: RealtimePage,
    requiredCommands: ["models.list"],
  },
  {
    path: "/keys",
    title: "Keys and accounts",
    group: "Govern",
    icon: "keys",
    component: KeysPage,
    requiredCommands: ["keys.list"],
  },
  {
    path: "/scopes",
    title: "Scopes",
    group: "Govern",
    icon: "accounts",
    component: ScopesPage,
    requiredCommands: ["scopes.list", "scopes.show"],
  },
  {
    path: "/config",
    title: "Config",
    group: "Govern",
    icon: "config",
    component: ConfigResponse,
    requiredCommands: ["config.show"],
  },
  {
    path: "/fleet",
    title: "Fleet",
    group: "Govern",
    icon: "fleet",
    component: FleetPage,
    requiredCommands: ["fleet"],
  },
  {
    path: "/ledger",
    title: "Ledger",
    group: "Govern",
    icon: "ledger",
    component: LedgerPage,
    requiredCommands: ["ledger.status"],
  },
  {
    path: "/caches",
    title: "Prompt caches",
    group: "Govern",
    icon: "usage",
    component: CachesPage,
    requiredCommands: ["ledger.caches"],
  },
  {
    path: "/bills",
    title: "Bills",
    group: "Govern",
    icon: "usage",
    component: BillsPage,
    requiredCommands: Object.values(BILL_COMMANDS),
  },
  {
    path: "/audit",
    title: "Audit",
    group: "Govern",
    icon: "audit",
    component: AuditPage,
    requiredCommands: ["audit.list"],
  },
  {
    path: "/admins",
    title: "Admins",
    group: "Govern",
    icon: "accounts",
    component: AdminsPage,
    requiredCommands: ["admins.list"],
  },
];

/** Returns the pages that the reader may open, in order. */
const permittedPages = (): readonly PageDefinition[] =>
  PAGES.filter(({ requiredCommands }) => isAllowed(...requiredCommands));
