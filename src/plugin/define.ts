import type { FrontendDef } from "./frontend.ts";
import type { MiddlewareDef } from "./middleware.ts";
import type { ObserverDef } from "./observer.ts";
import type { ProviderDef } from "./provider.ts";
import type { NoOptions, ObjectSchema } from "./schema.ts";
import type { StoreDef } from "./store/store-definition.ts";

/**
 * Marks a definition with the kind of its plugin. The brand is a string key, because a symbol would
 * make every plugin's own .d.ts fail (TS4082).
 */
export interface Branded<K extends string> {
  /** Kind of the plugin. */
  readonly "~tollgate": K;
}
type Def<D, K extends string> = D & Branded<K>;

/**
 * Declares a provider. Use the result as the default export of the module. This function only types
 * and marks the definition, so importing the module has no side effect. The loader calls `setup`
 * later, once for each config generation.
 */
export const defineProvider = <
  const O extends ObjectSchema = NoOptions,
  const C extends ObjectSchema = NoOptions,
>(
  d: ProviderDef<O, C>,
): Def<ProviderDef<O, C>, "provider"> => ({ ...d, "~tollgate": "provider" });

/**
 * Declares a frontend. Use the result as the default export of the module. The loader calls `setup`
 * once for each config generation, before its routes serve requests.
 */
export const defineFrontend = <const O extends ObjectSchema = NoOptions>(
  d: FrontendDef<O>,
): Def<FrontendDef<O>, "frontend"> => ({ ...d, "~tollgate": "frontend" });

/**
 * Declares a middleware. Use the result as the default export of the module. The loader calls
 * `setup` once for each config generation. The hooks that it returns run in the order in which
 * `gateway.yaml` lists the middleware.
 */
export const defineMiddleware = <const O extends ObjectSchema = NoOptions>(
  d: MiddlewareDef<O>,
): Def<MiddlewareDef<O>, "middleware"> => ({ ...d, "~tollgate": "middleware" });

/**
 * Declares an observer. Use the result as the default export of the module. An observer receives
 * records in batches, in the primary process, and cannot change anything. This function only marks
 * the definition. No code of the observer runs before the gateway sets it up.
 */
export const defineObserver = <const O extends ObjectSchema = NoOptions>(
  d: ObserverDef<O>,
): Def<ObserverDef<O>, "observer"> => ({ ...d, "~tollgate": "observer" });

/**
 * Declares a store. Use the result as the default export of the module. The primary process calls
 * `setup` once at start. A reload does not replace the store.
 */
export const defineStore = <const O extends ObjectSchema = NoOptions>(
  d: StoreDef<O>,
): Def<StoreDef<O>, "store"> => ({ ...d, "~tollgate": "store" });

/** Kind of a plugin. Each kind has its own section in `gateway.yaml`. */
export type PluginKind = "provider" | "frontend" | "middleware" | "observer" | "store";

/**
 * Any definition, in the form that the loader uses: options and credentials are unknown until they
 * are validated.
 */
export type Definition = Branded<PluginKind> &
  (
    | (ProviderDef<any, any> & Branded<"provider">)
    | (FrontendDef<any> & Branded<"frontend">)
    | (MiddlewareDef<any> & Branded<"middleware">)
    | (ObserverDef<any> & Branded<"observer">)
    | (StoreDef<any> & Branded<"store">)
  );
