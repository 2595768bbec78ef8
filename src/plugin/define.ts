import type { FrontendDef } from "./frontend.ts";
import type { MiddlewareDef } from "./middleware.ts";
import type { ProviderDef } from "./provider.ts";
import type { None, ObjectSchema } from "./schema.ts";
import type { StoreDef } from "./store.ts";

/** A string key, not a symbol: a symbol here makes every plugin's own .d.ts fail (TS4082). */
export interface Branded<K extends string> {
  readonly "~tollgate": K;
}
type Def<D, K extends string> = D & Branded<K>;

export const defineProvider = <
  const O extends ObjectSchema = None,
  const C extends ObjectSchema = None,
>(
  d: ProviderDef<O, C>,
): Def<ProviderDef<O, C>, "provider"> => ({ ...d, "~tollgate": "provider" });

export const defineFrontend = <const O extends ObjectSchema = None>(
  d: FrontendDef<O>,
): Def<FrontendDef<O>, "frontend"> => ({ ...d, "~tollgate": "frontend" });

export const defineMiddleware = <const O extends ObjectSchema = None>(
  d: MiddlewareDef<O>,
): Def<MiddlewareDef<O>, "middleware"> => ({ ...d, "~tollgate": "middleware" });

export const defineStore = <const O extends ObjectSchema = None>(
  d: StoreDef<O>,
): Def<StoreDef<O>, "store"> => ({ ...d, "~tollgate": "store" });

export type PluginKind = "provider" | "frontend" | "middleware" | "store";

/** Any definition, as the loader holds it: options and credentials are unknown until validated. */
export type Definition = Branded<PluginKind> &
  (
    | (ProviderDef<any, any> & Branded<"provider">)
    | (FrontendDef<any> & Branded<"frontend">)
    | (MiddlewareDef<any> & Branded<"middleware">)
    | (StoreDef<any> & Branded<"store">)
  );
