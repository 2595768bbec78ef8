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

export interface PageOf {
  /** "/usage"; what lies below it is the page's own. */
  readonly path: string;
  readonly title: string;
  readonly group: "Watch" | "Serve" | "Govern";
  readonly icon: IconName;
  /** `rest`: of the address below `path`: "", "0k3f…". */
  readonly view: ComponentType<{ rest: string }>;
}

export const PAGES: readonly PageOf[] = [
  { path: "/", title: "Overview", group: "Watch", icon: "overview", view: Overview },
  { path: "/usage", title: "Usage", group: "Watch", icon: "usage", view: Usage },
  { path: "/requests", title: "Requests", group: "Watch", icon: "requests", view: Requests },
  { path: "/models", title: "Models", group: "Serve", icon: "models", view: Models },
  { path: "/providers", title: "Providers", group: "Serve", icon: "providers", view: Providers },
  { path: "/routing", title: "Routing", group: "Serve", icon: "routing", view: Routing },
  {
    path: "/playground",
    title: "Playground",
    group: "Serve",
    icon: "playground",
    view: Playground,
  },
  { path: "/keys", title: "Keys and accounts", group: "Govern", icon: "keys", view: Keys },
  { path: "/config", title: "Config", group: "Govern", icon: "config", view: Config },
  { path: "/fleet", title: "Fleet", group: "Govern", icon: "fleet", view: FleetPage },
  { path: "/ledger", title: "Ledger", group: "Govern", icon: "ledger", view: Ledger },
  { path: "/audit", title: "Audit", group: "Govern", icon: "audit", view: Audit },
  { path: "/admins", title: "Admins", group: "Govern", icon: "accounts", view: Admins },
];
