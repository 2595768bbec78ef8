// Determines the origins that an operator named for a plugin. The plugin may connect to them, also
// on a private network.
import type { Plugin } from "../../plugin/plugin.ts";
import { type Schema, getValidator } from "../schema-dialect.ts";
import { valueAt } from "../source/config-tree.ts";

/** Returns the origin of the HTTP address at a pointer, or undefined if there is none. */
export function readOriginAt(value: unknown, pointer: string): string | undefined {
  const text = valueAt(value, pointer);
  return typeof text === "string" ? parseOrigin(text) : undefined;
}

function parseOrigin(text: string): string | undefined {
  const url = URL.parse(text);
  return url && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}

/**
 * Returns the origins in options that are marked `x-origin`, and those in the definition's `needs`.
 * Throws if one is not an address.
 */
export function listAllowedOrigins(
  { options: schema, needs }: Pick<Plugin<any>, "options" | "needs">,
  options: Readonly<Record<string, unknown>>,
  env: Readonly<Record<string, string | undefined>>,
): ReadonlySet<string> {
  const marked = schema ? getValidator(schema as Schema)(options).origins : [];
  const declared = (name: string) => {
    if (!needs?.env?.includes(name)) throw new Error(`needs.env does not include ${name}`);
    return env[name];
  };
  const named =
    typeof needs?.origins === "function" ? needs.origins(options, declared) : needs?.origins;
  const origins = new Set<string>();
  for (const pointer of marked) origins.add(readOriginAt(options, pointer) ?? "");
  for (const each of named ?? []) {
    const origin = parseOrigin(each);
    if (origin === undefined)
      throw new Error(
        `needs.origins contains ${JSON.stringify(each)}, which is not a valid origin`,
      );
    origins.add(origin);
  }
  origins.delete("");
  return origins;
}
