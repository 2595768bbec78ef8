// All pages of the console, in the order of the navigation.
import type { ComponentType } from "preact";
import type { IconName } from "./parts/icons.ts";
import { PlaygroundPage } from "./pages/playground/playground.ts";
import { OverviewPage } from "./pages/overview/overview.ts";
import { UsagePage } from "./pages/usage/usage.ts";
import { RequestsPage } from "./pages/requests/requests.ts";
import { AdminsPage } from "./pages/admins.ts";
import { AuditPage } from "./pages/audit.ts";
import { ConfigResponse } from "./pages/config.ts";
import { FleetPage } from "./pages/fleet.ts";
import { KeysPage } from "./pages/keys/keys.ts";
import { LedgerPage } from "./pages/ledger/ledger.ts";
import { ModelsPage } from "./pages/models/models.ts";
import { ProvidersPage } from "./pages/providers/providers.ts";
import { RoutingPage } from "./pages/routing.ts";
import { isAllowed } from "./permissions.ts";

export interface PageDefinition {
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

export const PAGES: readonly PageDefinition[] = [
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
    path: "/keys",
    title: "Keys and accounts",
    group: "Govern",
    icon: "keys",
    component: KeysPage,
    requiredCommands: ["keys.list"],
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
export const permittedPages = (): readonly PageDefinition[] =>
  PAGES.filter(({ requiredCommands }) => isAllowed(...requiredCommands));
