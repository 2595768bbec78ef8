// Lists every known plugin: plugins that ship with Tollgate, and plugins that the config contains.
import type { LoadedConfig } from "../../config/load-config.ts";
import type { Definition, PluginKind } from "../../plugin/define.ts";
import { builtinPlugins, version } from "./load-config.ts";

export interface KnownPlugin {
  readonly kind: PluginKind;
  readonly use: string;
  /** Origin: "built-in", a path, or "package@version". */
  readonly from: string;
  readonly version: string;
  readonly definition: Definition;
}

export const KINDS: readonly PluginKind[] = [
  "frontend",
  "middleware",
  "observer",
  "provider",
  "store",
];

export async function knownPlugins(loaded: LoadedConfig): Promise<KnownPlugin[]> {
  const ours = KINDS.flatMap((kind) =>
    Object.entries(builtinPlugins[kind]).map(async ([use, load]): Promise<KnownPlugin> => {
      const { default: definition } = (await load()) as { default: Definition };
      return { kind, use, from: "built-in", version, definition };
    }),
  );
  const { config } = loaded;
  const mounted = config
    ? [
        config.store,
        ...config.frontends,
        ...config.middleware,
        ...config.observers,
        ...config.providers.values(),
      ]
    : [];
  const others = new Map<string, KnownPlugin>();
  for (const { definition, use, loadedFrom, isBuiltIn } of mounted) {
    const kind = definition["~tollgate"];
    const [, number] = /^.+@([^@/]+)$/.exec(loadedFrom) ?? [];
    if (!isBuiltIn)
      others.set(`${kind} ${use}`, {
        kind,
        use,
        from: loadedFrom,
        version: number ?? "",
        definition,
      });
  }
  return [...(await Promise.all(ours)), ...others.values()].sort(
    (a, b) => KINDS.indexOf(a.kind) - KINDS.indexOf(b.kind) || (a.use < b.use ? -1 : 1),
  );
}
