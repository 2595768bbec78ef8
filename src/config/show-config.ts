// Shows the long form of the config without secrets: defaults are filled in, values from variables
// and files are shown as references, and secrets as [secret]. The output is a valid gateway.yaml
// with the same meaning, except for literal secrets.
import { Document, isNode, isScalar, visit } from "yaml";
import { CONFIG_SCHEMA } from "./schema/config-schema.ts";
import { EMPTY_SCHEMA, type Schema, getValidator } from "./schema-dialect.ts";
import { escapeTemplate, parseTemplate } from "./source/interpolate.ts";
import { listTextLeaves, type PluginMount } from "./mount-plugins.ts";
import { listProxySecrets } from "./sections/proxy-config.ts";
import {
  childPointer,
  isMapping,
  type Mapping,
  valueAt,
  toDisplayPath,
  type ConfigTree,
} from "./source/config-tree.ts";
import type { GatewayConfig, MountConfig } from "./gateway-config.ts";
import type { ConfigOverrides } from "./expand-config.ts";
import type { SourceSpan } from "./source/source-span.ts";

export interface ConfigProvenance {
  /** Pointers in the file for values that have a different pointer in the long form. */
  readonly movedFrom: ReadonlyMap<string, string>;
  readonly writtenTexts: ReadonlyMap<string, string>;
  /** Pointers. */
  readonly secrets: ReadonlySet<string>;
}

const SECRET_PLACEHOLDER = "[secret]";

/** @param view The redacted config. */
export function formatConfig(
  view: unknown,
  { file, unmountedProviders }: Pick<GatewayConfig, "file" | "unmountedProviders">,
  json = false,
): string {
  if (json) return `${JSON.stringify(view, null, 2)}\n`;
  const document = new Document(view);
  document.commentBefore = ` ${file} with defaults. Variables are shown as written, secrets are hidden`;
  for (const [name, why] of unmountedProviders) {
    const node = document.getIn(["providers", name], true);
    if (isNode(node)) node.commentBefore = ` not mounted: ${why}`;
  }
  // A list of scalars is easier to read on one line.
  visit(document, { Seq: (_, list) => void (list.flow = list.items.every(isScalar)) });
  return document.toString({ lineWidth: 0 });
}

/** Replaces secrets, and restores references. Escapes text that would be read as a reference. */
export function redactValue(value: unknown, pointer: string, of: ConfigProvenance): unknown {
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([key, each]) => [key, redactValue(each, childPointer(pointer, key), of)] as const);
    return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
  }
  const source = of.movedFrom.get(pointer) ?? pointer;
  const written = of.writtenTexts.get(source);
  const secret = of.secrets.has(source);
  if (written !== undefined) return secret ? keepReferencesOnly(written) : written;
  if (secret) return SECRET_PLACEHOLDER;
  return typeof value === "string" ? escapeTemplate(value) : value;
}

/** Masks the default of a reference and the text around it, because they may be the secret. */
const keepReferencesOnly = (written: string): string =>
  parseTemplate(written)
    .parts.map((part) => {
      if (part.kind === "text") return SECRET_PLACEHOLDER;
      if (part.kind !== "env" || !part.fallback) return part.raw;
      return `\${env:${part.name}:-${SECRET_PLACEHOLDER}}`;
    })
    .join("");

/** Returns the long form with the options of plugins as their schemas filled them in. */
export function toShownConfig(
  root: Mapping,
  mounts: readonly PluginMount[],
  unmountedProviders: ReadonlyMap<string, string>,
): Mapping {
  const { include: _, ...shown } = structuredClone(root);
  for (const { pointer, use, loadedFrom, options, credentials } of mounts) {
    const entry = valueAt(shown, pointer) as Mapping;
    // A path in the file is relative to that file. Here it is converted to an absolute path.
    entry["use"] = /^\.{1,2}\//.test(use) ? loadedFrom : use;
    const several = entry["credentials"] as Mapping[] | undefined;
    entry["with"] = omitEmpty(several ? options : { ...options, ...credentials[0] });
    for (const [i, each] of (several ?? []).entries()) each["with"] = omitEmpty(credentials[i]!);
  }
  const providers = shown["providers"] as Record<string, Mapping>;
  for (const name of unmountedProviders.keys()) {
    const { use, when } = providers[name]!;
    providers[name] = { use, when };
  }
  return inSchemaOrder(shown, CONFIG_SCHEMA) as Mapping;
}

/** Orders keys as the schema does. Keys that it does not name follow. */
function inSchemaOrder(value: unknown, schema: Schema): unknown {
  if (Array.isArray(value))
    return value.map((each) => inSchemaOrder(each, branchOf(schema, value)["items"] as Schema));
  if (!isMapping(value)) return value;
  const { properties = {}, additionalProperties } = branchOf(schema, value);
  const known = properties as Readonly<Record<string, Schema>>;
  const names = new Set([...Object.keys(known), ...Object.keys(value)]);
  const others = isMapping(additionalProperties) ? additionalProperties : EMPTY_SCHEMA;
  return Object.fromEntries(
    [...names]
      .filter((name) => value[name] !== undefined)
      .map((name) => [name, inSchemaOrder(value[name], known[name] ?? others)]),
  );
}

/** Returns the part of a schema with several forms that describes the value. */
function branchOf(schema: Schema = EMPTY_SCHEMA, value: object): Schema {
  const condition = schema["if"] as Schema | undefined;
  if (condition === undefined) return schema;
  const fits = condition["type"] === (Array.isArray(value) ? "array" : "object");
  return branchOf(schema[fits ? "then" : "else"] as Schema, value);
}

const omitEmpty = (options: Mapping) => (Object.keys(options).length > 0 ? options : undefined);

/**
 * Returns every value that a schema marks as secret, the longest first. Logs must not contain them.
 */
export function listSecrets(config: GatewayConfig): string[] {
  const found = new Set<string>();
  const collect = (schema: Schema | undefined, value: unknown) => {
    for (const pointer of getValidator(schema ?? EMPTY_SCHEMA)(value).secrets)
      for (const [, text] of listTextLeaves(valueAt(value, pointer), ""))
        if (text !== "") found.add(text);
  };
  const mounted: readonly MountConfig<{ options?: unknown }>[] = [
    config.store,
    ...config.frontends,
    ...config.middleware,
    ...config.observers,
    ...config.providers.values(),
  ];
  for (const { token } of config.admin?.tokens ?? []) found.add(token);
  for (const part of listProxySecrets(config.proxy)) found.add(part);
  if (config.admin?.oidc?.clientSecret) found.add(config.admin.oidc.clientSecret);
  for (const { definition, options } of mounted) collect(definition.options as Schema, options);
  for (const { definition, credentials } of config.providers.values())
    for (const { fields } of credentials) collect(definition.credential as Schema, fields);
  return [...found].sort((a, b) => b.length - a.length);
}

// Lists the source of each value in the running config: a line of a file, the variable or file to
// which the line refers, the command line, or a default.

/** A value without secrets. */
export interface ShownValue {
  /** Path of the value, such as "listen.port" or "providers.openai.with.api_key" */
  readonly path: string;
  /**
   * The value in the form of the file if it contains a reference. A secret is replaced by
   * "[secret]".
   */
  readonly value: string | number | boolean | null;
  readonly source: "file" | "variable" | "other file" | "command line" | "default";
  /** Position of a value in a file, such as "/etc/tollgate/gateway.yaml:3:5". */
  readonly location?: string;
}

/** Pointers that the command line overrides. */
const OVERRIDE_POINTERS: Readonly<Record<string, keyof ConfigOverrides>> = {
  "/listen/host": "host",
  "/listen/port": "port",
  "/listen/0/host": "host",
  "/listen/0/port": "port",
  "/state_dir": "stateDir",
  "/workers": "workers",
  "/log/level": "logLevel",
};

interface ShownValueInputs {
  readonly tree: ConfigTree;
  readonly written: ReadonlyMap<string, string>;
  readonly overrides: ConfigOverrides;
  /** Pointers in the file for values that have a different pointer in the long form. */
  readonly movedFrom: ReadonlyMap<string, string>;
}

/** Returns the leaves of the shown config, in its order. */
export function listShownValues(view: unknown, of: ShownValueInputs): ShownValue[] {
  const values: ShownValue[] = [];
  const walk = (value: unknown, pointer: string) => {
    if (typeof value === "object" && value !== null) {
      for (const [key, each] of Object.entries(value)) walk(each, childPointer(pointer, key));
      return;
    }
    values.push({
      path: toDisplayPath(view, pointer),
      value: value as ShownValue["value"],
      ...valueOriginOf(of.movedFrom.get(pointer) ?? pointer, of),
    });
  };
  walk(view, "");
  return values;
}

function valueOriginOf(
  pointer: string,
  { tree, written, overrides }: ShownValueInputs,
): Pick<ShownValue, "source" | "location"> {
  const overrideName = OVERRIDE_POINTERS[pointer];
  if (overrideName !== undefined && overrides[overrideName] !== undefined)
    return { source: "command line" };
  const place = tree.positions.get(pointer)?.value;
  if (place === undefined) return { source: "default" };
  const location = formatSpan(place);
  const template = written.get(pointer);
  if (template === undefined) return { source: "file", location };
  const other = parseTemplate(template).parts.some(
    ({ kind }) => kind === "file" || kind === "credential",
  );
  return { source: other ? "other file" : "variable", location };
}

function formatSpan({ source, start }: SourceSpan): string {
  const { line, col } = source.lines.linePos(start);
  return `${source.file}:${line}:${col}`;
}
