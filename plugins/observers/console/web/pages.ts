// Every page of the console, in the order of its list: a line each.
import type { ComponentType } from "preact";
import type { IconName } from "./parts/icons.ts";
import { Playground } from "./pages/playground.ts";
import { Overview } from "./pages/overview.ts";
import { Usage } from "./pages/usage.ts";
import { Requests } from "./pages/requests.ts";
import { Admins } from "./pages/admins.ts";
import { Audit } from "./pages/audit.ts";
import { Config } from "./pages/config.ts";
import { FleetPage } from "./pages/fleet.ts";
import { Keys } from "./pages/keys.ts";
import { Ledger } from "./pages/ledger.ts";
import { Models } from "./pages/models.ts";
import { Providers } from "./pages/providers.ts";
import { Routing } from "./pages/routing.ts";
import { may } from "./rights.ts";

export interface PageOf {
  /** "/usage"; what lies below it is the page's own. */
  readonly path: string;
  readonly title: string;
  readonly group: "Watch" | "Serve" | "Govern";
  readonly icon: IconName;
  /** Commands without which the page has nothing to show: a reader that may not use them does not get it. */
  readonly needs: readonly string[];
  /** `rest`: of the address below `path`: "", "0k3f…". */
  readonly view: ComponentType<{ rest: string }>;
}

export const PAGES: readonly PageOf[] = [
  {
    path: "/",
    title: "Overview",
    group: "Watch",
    icon: "overview",
    view: Overview,
    needs: ["stats.series", "attention"],
  },
  {
    path: "/usage",
    title: "Usage",
    group: "Watch",
    icon: "usage",
    view: Usage,
    needs: ["ledger.totals", "usage.series"],
  },
  {
    path: "/requests",
    title: "Requests",
    group: "Watch",
    icon: "requests",
    view: Requests,
    needs: ["requests.list", "requests.search"],
  },
  {
    path: "/models",
    title: "Models",
    group: "Serve",
    icon: "models",
    view: Models,
    needs: ["models.list"],
  },
  {
    path: "/providers",
    title: "Providers",
    group: "Serve",
    icon: "providers",
    view: Providers,
    needs: ["providers.list"],
  },
  {
    path: "/routing",
    title: "Routing",
    group: "Serve",
    icon: "routing",
    view: Routing,
    needs: ["explain"],
  },
  {
    path: "/playground",
    title: "Playground",
    group: "Serve",
    icon: "playground",
    view: Playground,
    needs: ["models.list"],
  },
  {
    path: "/keys",
    title: "Keys and accounts",
    group: "Govern",
    icon: "keys",
    view: Keys,
    needs: ["keys.list"],
  },
  {
    path: "/config",
    title: "Config",
    group: "Govern",
    icon: "config",
    view: Config,
    needs: ["config.show"],
  },
  {
    path: "/fleet",
    title: "Fleet",
    group: "Govern",
    icon: "fleet",
    view: FleetPage,
    needs: ["fleet"],
  },
  {
    path: "/ledger",
    title: "Ledger",
    group: "Govern",
    icon: "ledger",
    view: Ledger,
    needs: ["ledger.state"],
  },
  {
    path: "/audit",
    title: "Audit",
    group: "Govern",
    icon: "audit",
    view: Audit,
    needs: ["audit.list"],
  },
  {
    path: "/admins",
    title: "Admins",
    group: "Govern",
    icon: "accounts",
    view: Admins,
    needs: ["admins.list"],
  },
];

/** The pages that the reader gets, in their order. */
export const ownPages = (): readonly PageOf[] => PAGES.filter(({ needs }) => may(...needs));
