import type { FrontendDef } from "./frontend.ts";
import type { MiddlewareDef } from "./middleware.ts";
import type { ObserverDef } from "./observer.ts";
import type { ProviderDef } from "./provider.ts";
import type { NoOptions, ObjectSchema } from "./schema.ts";
import type { StoreDef } from "./store/store-definition.ts";

/** A string key, not a symbol: a symbol here makes every plugin's own .d.ts fail (TS4082). */
export interface Branded<K extends string> {
  /** Kind of the plugin. */
  readonly "~tollgate": K;
}
type Def<D, K extends string> = D & Branded<K>;

/**
 * Declares a provider: a module's default export. Does nothing but type and brand the definition, so that importing it
 * has no side effect; the loader calls `setup` later, once for each generation.
 */
export const defineProvider = <
  const O extends ObjectSchema = NoOptions,
  const C extends ObjectSchema = NoOptions,
>(
  d: ProviderDef<O, C>,
): Def<ProviderDef<O, C>, "provider"> => ({ ...d, "~tollgate": "provider" });

/**
 * Declares a frontend: a module's default export. The loader calls `setup` once for each generation, before its routes
 * answer.
 */
export const defineFrontend = <const O extends ObjectSchema = NoOptions>(
  d: FrontendDef<O>,
): Def<FrontendDef<O>, "frontend"> => ({ ...d, "~tollgate": "frontend" });

/**
 * Declares a middleware: a module's default export. The loader calls `setup` once for each generation; the hooks it
 * returns run in the order in which `gateway.yaml` lists the middlewares.
 */
export const defineMiddleware = <const O extends ObjectSchema = NoOptions>(
  d: MiddlewareDef<O>,
): Def<MiddlewareDef<O>, "middleware"> => ({ ...d, "~tollgate": "middleware" });

/**
 * An observer: it is told what happened, in batches, in the primary process, and changes nothing. The default export of its
 * module; it only marks the definition, and nothing of it runs before the gateway mounts it.
 */
export const defineObserver = <const O extends ObjectSchema = NoOptions>(
  d: ObserverDef<O>,
): Def<ObserverDef<O>, "observer"> => ({ ...d, "~tollgate": "observer" });

/**
 * Declares a store: a module's default export. The primary process calls `setup` once at start; a reload does not
 * replace it.
 */
export const defineStore = <const O extends ObjectSchema = NoOptions>(
  d: StoreDef<O>,
): Def<StoreDef<O>, "store"> => ({ ...d, "~tollgate": "store" });

/** What a definition's brand may say. Each kind has a section of its own in `gateway.yaml`. */
export type PluginKind = "provider" | "frontend" | "middleware" | "observer" | "store";

/** Any definition, as the loader holds it: options and credentials are unknown until validated. */
export type Definition = Branded<PluginKind> &
  (
    | (ProviderDef<any, any> & Branded<"provider">)
    | (FrontendDef<any> & Branded<"frontend">)
    | (MiddlewareDef<any> & Branded<"middleware">)
    | (ObserverDef<any> & Branded<"observer">)
    | (StoreDef<any> & Branded<"store">)
  );
