// Which origins an operator has named to a plugin: these it may reach as they are, on a private network too.
import type { Plugin } from "../../plugin/plugin.ts";
import { type Schema, getValidator } from "../schema-dialect.ts";
import { valueAt } from "../source/config-tree.ts";

/** The origin of an http address that stands there; undefined when there is none. */
export function readOriginAt(value: unknown, pointer: string): string | undefined {
  const text = valueAt(value, pointer);
  return typeof text === "string" ? parseOrigin(text) : undefined;
}

function parseOrigin(text: string): string | undefined {
  const url = URL.parse(text);
  return url && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}

/** Of what the options marked `x-origin` say, and of what the definition says it needs. Throws for what is no address. */
export function listAllowedOrigins(
  { options: schema, needs }: Pick<Plugin<any>, "options" | "needs">,
  options: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): ReadonlySet<string> {
  const marked = schema ? getValidator(schema as Schema)(options).origins : [];
  const declared = (name: string) => {
    if (!needs?.env?.includes(name)) throw new Error(`needs.env does not name ${name}`);
    return env[name];
  };
  const named =
    typeof needs?.origins === "function" ? needs.origins(options, declared) : needs?.origins;
  const origins = new Set<string>();
  for (const pointer of marked) origins.add(readOriginAt(options, pointer) ?? "");
  for (const each of named ?? []) {
    const origin = parseOrigin(each);
    if (origin === undefined)
      throw new Error(`needs.origins has ${JSON.stringify(each)}, which is no address`);
    origins.add(origin);
  }
  origins.delete("");
  return origins;
}
