// Shows the config without secrets: defaults are filled in, values from variables and files appear
// as references, and secrets as [secret]. The output is itself a gateway.yaml with the same
// meaning, except for literal secrets.
import { Document, isNode, isScalar, visit } from "yaml";
import { formatDuration, formatSize } from "../lib/time/units.ts";
import { EMPTY_SCHEMA, type Schema, getValidator } from "./schema-dialect.ts";
import { escapeTemplate, parseTemplate } from "./source/interpolate.ts";
import { formatHedge } from "./sections/hedge.ts";
import { formatListen } from "./sections/listen-config.ts";
import { listTextLeaves } from "./mount-plugins.ts";
import { listProxySecrets } from "./sections/proxy-config.ts";
import { candidateReferences } from "./name-references.ts";
import { formatTimeouts } from "./sections/timeout-config.ts";
import { childPointer, isMapping, type Mapping, valueAt } from "./source/config-tree.ts";
import type { GatewayConfig, MountConfig, ProviderConfig } from "./gateway-config.ts";

export interface ConfigProvenance {
  /** Raw values of the file, in their short forms. */
  readonly root: Mapping;
  readonly writtenTexts: ReadonlyMap<string, string>;
  /** Pointers. */
  readonly secrets: ReadonlySet<string>;
}

const SECRET_PLACEHOLDER = "[secret]";

/** Returns the shown config as plain data. */
export const toShownConfig = (config: GatewayConfig, of: ConfigProvenance): unknown =>
  redactValue(toYamlShape(config, of.root), "", of);

export function formatConfig(config: GatewayConfig, of: ConfigProvenance, json = false): string {
  const view = toShownConfig(config, of);
  if (json) return `${JSON.stringify(view, null, 2)}\n`;
  const document = new Document(view);
  document.commentBefore = ` ${config.file} with defaults. Variables are shown as written, secrets are hidden`;
  for (const [name, why] of config.unmountedProviders) {
    const node = document.getIn(["providers", name], true);
    if (isNode(node)) node.commentBefore = ` not enabled: ${why}`;
  }
  // A list of scalars is easier to read on one line.
  visit(document, { Seq: (_, list) => void (list.flow = list.items.every(isScalar)) });
  return document.toString({ lineWidth: 0 });
}

/** Replaces secrets, and restores references. Escapes text that would be read as a reference. */
function redactValue(value: unknown, pointer: string, of: ConfigProvenance): unknown {
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([key, each]) => [key, redactValue(each, childPointer(pointer, key), of)] as const);
    return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
  }
  const source = sourcePointerOf(pointer, of.root);
  const written = of.writtenTexts.get(source);
  const secret = of.secrets.has(source);
  if (written !== undefined) return secret ? keepReferencesOnly(written) : written;
  if (secret) return SECRET_PLACEHOLDER;
  return typeof value === "string" ? escapeTemplate(value) : value;
}

/** Masks the default and the text around a reference, which may be the secret itself. */
const keepReferencesOnly = (written: string): string =>
  parseTemplate(written)
    .parts.map((part) => {
      if (part.kind === "text") return SECRET_PLACEHOLDER;
      if (part.kind !== "env" || !part.fallback) return part.raw;
      return `\${env:${part.name}:-${SECRET_PLACEHOLDER}}`;
    })
    .join("");

/**
 * Returns the pointer in the file for a pointer of the shown config. They differ only for the short
 * forms of `models:`.
 */
export function sourcePointerOf(pointer: string, root: Mapping): string {
  const [, line, index] = /^(\/models\/[^/]+)\/candidates\/(\d+)(?:\/model)?$/.exec(pointer) ?? [];
  if (line === undefined) return pointer;
  return candidateReferences(valueAt(root, line), line)[Number(index)]?.pointer ?? pointer;
}

const formatShutdown = ({ shutdownTimeoutMs, shutdownAnnounceMs }: GatewayConfig) =>
  shutdownAnnounceMs === undefined
    ? formatDuration(shutdownTimeoutMs)
    : {
        announce: formatDuration(shutdownAnnounceMs),
        timeout: formatDuration(shutdownTimeoutMs),
      };

/** Returns the config with the keys in the order of the schema. */
function toYamlShape(config: GatewayConfig, root: Mapping): Mapping {
  const rawProviders = isMapping(root["providers"]) ? root["providers"] : {};
  const providers = Object.keys(rawProviders).map((name) => {
    const provider = config.providers.get(name);
    const its = isMapping(rawProviders[name]) ? rawProviders[name] : {};
    return [
      name,
      provider ? formatProvider(provider, its) : { use: its["use"], when: its["when"] },
    ];
  });
  return {
    listen: formatListen(config.listen),
    admin: formatAdmin(root["admin"], config.admin),
    proxy: config.proxy && { url: config.proxy.url, bypass: config.proxy.bypassHosts },
    public_url: config.publicUrl,
    state_dir: config.stateDir,
    workers: config.workers,
    shutdown: formatShutdown(config),
    allow_empty: config.allowEmpty,
    strict: config.strict,
    timeouts: {
      ...formatTimeouts(config.timeouts),
      client_write: formatDuration(config.writeTimeoutMs),
    },
    retries: { per_target: config.retries.perTarget, total: config.retries.total },
    max_body: formatSize(config.maxBodyBytes),
    bounds: {
      in_flight: formatSize(config.bounds.inFlightBytes),
      json_values: config.bounds.jsonValues,
      response: formatSize(config.bounds.responseBytes),
      connections: config.bounds.connections,
      connections_per_address: config.bounds.connectionsPerAddress,
    },
    overload: {
      max_concurrent: config.overload.maxConcurrent,
      max_queue_wait: formatDuration(config.overload.maxQueueWaitMs),
    },
    catalog: { refresh: formatDuration(config.listRefreshMs) },
    files: {
      lifetime: formatDuration(config.files.ttlMs),
      max_file: formatSize(config.files.maxFileBytes),
      max_key: formatSize(config.files.maxKeyBytes),
      max_total: formatSize(config.files.maxBytes),
    },
    request_history: config.requestHistory,
    log: { level: config.log.level, slow_request: formatDuration(config.log.slowRequestMs) },
    ledger: {
      retention: config.ledger.retentionMs && formatDuration(config.ledger.retentionMs),
    },
    store: formatMount(config.store),
    frontends: config.frontends.map(formatMount),
    middleware: config.middleware.map((m) => ({
      ...formatMount(m),
      for: m.scope,
      timeout: formatDuration(m.timeoutMs),
      on_error: m.onError,
      ...(m.trustPolicy && { trust_policy: true }),
      ...(m.isolate && { isolate: m.isolate }),
    })),
    accounts: isMapping(root["accounts"]) ? omitEmpty(root["accounts"]) : undefined,
    key_defaults: isMapping(root["key_defaults"]) ? omitEmpty(root["key_defaults"]) : undefined,
    observers: config.observers.map(formatMount),
    providers: Object.fromEntries(providers),
    models: Object.fromEntries(
      [...config.models].map(([name, { candidates, weights, pick, fallbackOn, hedge }]) => [
        name,
        {
          candidates: candidates.map((model) => {
            const weight = weights.get(model);
            return weight === undefined ? model : { model, weight };
          }),
          pick,
          fallback_on: fallbackOn,
          hedge: hedge && formatHedge(hedge),
        },
      ]),
    ),
  };
}

function formatAdmin(raw: unknown, admin: GatewayConfig["admin"]): Mapping | undefined {
  if (!admin || !isMapping(raw)) return undefined;
  const { behind_proxy } = raw;
  const tokens = admin.tokens.map(({ name, role, token }) => [name, { role, token }] as const);
  return {
    ...admin.address,
    hosts: admin.hosts,
    behind_proxy,
    tokens: Object.fromEntries(tokens),
    oidc: admin.oidc && {
      ...(raw["oidc"] as Mapping),
      scopes: admin.oidc.scopes,
      groups: admin.oidc.groupsClaim,
      name: admin.oidc.nameClaim,
    },
  };
}

/** A path is relative to the file that contains it. Here it is absolute. */
const formatMount = ({ use, loadedFrom, options }: MountConfig<unknown>) => ({
  use: /^\.{1,2}\//.test(use) ? loadedFrom : use,
  with: omitEmpty(options),
});

const omitEmpty = (options: Mapping) => (Object.keys(options).length > 0 ? options : undefined);

function formatProvider(provider: ProviderConfig, raw: Mapping): Mapping {
  const { credentials, options } = provider;
  const several = Array.isArray(raw["credentials"]);
  return {
    use: formatMount(provider).use,
    when: raw["when"],
    with: omitEmpty(several ? options : { ...options, ...credentials[0]!.fields }),
    credentials: several
      ? credentials.map(({ name, fields, zdr, weight, models }) => ({
          name,
          with: omitEmpty(fields),
          zdr,
          weight,
          models,
        }))
      : undefined,
    trust_policy: provider.trustPolicy,
    state_mode: provider.stateMode,
    ...(provider.zdrAllowedFields.length > 0 && { zdr_allowed_fields: provider.zdrAllowedFields }),
    on_disconnect: provider.onDisconnect,
    require_ready: provider.requireReady,
    timeouts: raw["timeouts"] === undefined ? undefined : formatTimeouts(provider.timeouts),
    models: raw["models"],
  };
}

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
