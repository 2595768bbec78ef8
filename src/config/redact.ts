// The config as it may be shown: every default filled in, what came from a variable or a file as it is written there,
// secrets as [secret]. What is shown is itself a gateway.yaml that means the same, literal secrets apart.
import { Document, isNode, isScalar, visit } from "yaml";
import { sayDuration, saySize } from "../lib/duration.ts";
import { NOTHING, type Schema, validator } from "./dialect.ts";
import { escapeTemplate, parseTemplate } from "./interpolate.ts";
import { hedgeView } from "./hedge.ts";
import { listenView } from "./listen.ts";
import { leaves } from "./mounts.ts";
import { proxySecrets } from "./proxy.ts";
import { candidatesOf } from "./references.ts";
import { timeoutsView } from "./timeouts.ts";
import { below, isMapping, type Mapping, valueAt } from "./tree.ts";
import type { GatewayConfig, MountConfig, ProviderConfig } from "./types.ts";

export interface Provenance {
  /** The file's own values, short forms as they are. */
  readonly root: Mapping;
  readonly written: ReadonlyMap<string, string>;
  /** Pointers. */
  readonly secrets: ReadonlySet<string>;
}

const SECRET = "[secret]";

/** As plain data. */
export const viewConfig = (config: GatewayConfig, of: Provenance): unknown =>
  shown(viewOf(config, of.root), "", of);

export function printConfig(config: GatewayConfig, of: Provenance, json = false): string {
  const view = viewConfig(config, of);
  if (json) return `${JSON.stringify(view, null, 2)}\n`;
  const document = new Document(view);
  document.commentBefore = ` ${config.file}, with its defaults; variables as written, secrets hidden`;
  for (const [name, why] of config.unmounted) {
    const node = document.getIn(["providers", name], true);
    if (isNode(node)) node.commentBefore = ` not mounted: ${why}`;
  }
  // A list of names reads better as a line.
  visit(document, { Seq: (_, list) => void (list.flow = list.items.every(isScalar)) });
  return document.toString({ lineWidth: 0 });
}

/** Secrets out, sources in; what would be read as a reference is escaped. */
function shown(value: unknown, pointer: string, of: Provenance): unknown {
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([key, each]) => [key, shown(each, below(pointer, key), of)] as const);
    return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
  }
  const source = sourceOf(pointer, of.root);
  const written = of.written.get(source);
  const secret = of.secrets.has(source);
  if (written !== undefined) return secret ? referencesOnly(written) : written;
  if (secret) return SECRET;
  return typeof value === "string" ? escapeTemplate(value) : value;
}

/** A default, or text around a reference, may be the secret itself. */
const referencesOnly = (written: string): string =>
  parseTemplate(written)
    .parts.map((part) => {
      if (part.kind === "text") return SECRET;
      if (part.kind !== "env" || !part.otherwise) return part.raw;
      return `\${env:${part.name}:-${SECRET}}`;
    })
    .join("");

/** Where a candidate stood in the short forms of `models:`; anything else stands where it is shown. */
export function sourceOf(pointer: string, root: Mapping): string {
  const [, line, index] = /^(\/models\/[^/]+)\/candidates\/(\d+)(?:\/model)?$/.exec(pointer) ?? [];
  if (line === undefined) return pointer;
  return candidatesOf(valueAt(root, line), line)[Number(index)]?.pointer ?? pointer;
}

const drainView = ({ drainMs, announceMs }: GatewayConfig) =>
  announceMs === undefined
    ? sayDuration(drainMs)
    : { announce: sayDuration(announceMs), for: sayDuration(drainMs) };

/** In the order in which the schema has them. */
function viewOf(config: GatewayConfig, root: Mapping): Mapping {
  const said = isMapping(root["providers"]) ? root["providers"] : {};
  const providers = Object.keys(said).map((name) => {
    const provider = config.providers.get(name);
    const its = isMapping(said[name]) ? said[name] : {};
    return [name, provider ? providerView(provider, its) : { use: its["use"], when: its["when"] }];
  });
  return {
    listen: listenView(config.listen),
    admin: adminView(root["admin"], config.admin),
    proxy: config.proxy,
    public_url: config.publicUrl,
    state_dir: config.stateDir,
    workers: config.workers,
    drain: drainView(config),
    allow_empty: config.allowEmpty,
    strict: config.strict,
    timeouts: { ...timeoutsView(config.timeouts), write: sayDuration(config.writeMs) },
    attempts: config.attempts,
    max_body: saySize(config.maxBodyBytes),
    bounds: {
      in_flight: saySize(config.bounds.inFlightBytes),
      values: config.bounds.values,
      answer: saySize(config.bounds.answerBytes),
      connections: config.bounds.connections,
      connections_per_address: config.bounds.connectionsPerAddress,
    },
    overload: { concurrent: config.overload.most, wait: sayDuration(config.overload.waitMs) },
    catalogue: { refresh: sayDuration(config.refreshMs) },
    files: {
      lifetime: sayDuration(config.files.ttlMs),
      max_file: saySize(config.files.maxFileBytes),
      max_key: saySize(config.files.maxKeyBytes),
      max_total: saySize(config.files.maxBytes),
    },
    remember: config.remember,
    log: { level: config.log.level, slow: sayDuration(config.log.slowMs) },
    ledger: { keep: config.ledger.keepMs && sayDuration(config.ledger.keepMs) },
    store: mountedView(config.store),
    frontends: config.frontends.map(mountedView),
    middleware: config.middleware.map((m) => ({
      ...mountedView(m),
      for: m.for,
      timeout: sayDuration(m.timeoutMs),
      on_error: m.onError,
      ...(m.trustPolicy && { trust_policy: true }),
      ...(m.isolate && { isolate: m.isolate }),
    })),
    accounts: isMapping(root["accounts"]) ? filled(root["accounts"]) : undefined,
    defaults: isMapping(root["defaults"]) ? filled(root["defaults"]) : undefined,
    observers: config.observers.map(mountedView),
    providers: Object.fromEntries(providers),
    models: Object.fromEntries(
      [...config.models].map(([name, { candidates, weights, pick, on, hedge }]) => [
        name,
        {
          candidates: candidates.map((model) => {
            const weight = weights.get(model);
            return weight === undefined ? model : { model, weight };
          }),
          pick,
          on,
          hedge: hedge && hedgeView(hedge),
        },
      ]),
    ),
  };
}

function adminView(said: unknown, admin: GatewayConfig["admin"]): Mapping | undefined {
  if (!admin || !isMapping(said)) return undefined;
  const { behind_proxy } = said;
  const tokens = admin.tokens.map(({ name, role, token }) => [name, { role, token }] as const);
  return {
    ...admin.at,
    hosts: admin.hosts,
    behind_proxy,
    tokens: Object.fromEntries(tokens),
    oidc: admin.oidc && {
      ...(said["oidc"] as Mapping),
      scopes: admin.oidc.scopes,
      groups: admin.oidc.groups,
      name: admin.oidc.name,
    },
  };
}

/** A path is relative to the file that it stands in; here it is whole. */
const mountedView = ({ use, from, options }: MountConfig<unknown>) => ({
  use: /^\.{1,2}\//.test(use) ? from : use,
  with: filled(options),
});

const filled = (options: Mapping) => (Object.keys(options).length > 0 ? options : undefined);

function providerView(provider: ProviderConfig, said: Mapping): Mapping {
  const { credentials, options } = provider;
  const several = Array.isArray(said["credentials"]);
  return {
    use: mountedView(provider).use,
    when: said["when"],
    with: filled(several ? options : { ...options, ...credentials[0]!.fields }),
    credentials: several
      ? credentials.map(({ name, fields, zdr, weight, models }) => ({
          name,
          with: filled(fields),
          zdr,
          weight,
          models,
        }))
      : undefined,
    trust_policy: provider.trustPolicy,
    state: provider.state,
    ...(provider.zdrFields.length > 0 && { zdr_fields: provider.zdrFields }),
    on_disconnect: provider.onDisconnect,
    require_ready: provider.requireReady,
    timeouts: said["timeouts"] === undefined ? undefined : timeoutsView(provider.timeouts),
    models: said["models"],
  };
}

/** Every value that a schema calls secret, the longest first: what a log must never say. */
export function secretsOf(config: GatewayConfig): string[] {
  const found = new Set<string>();
  const collect = (schema: Schema | undefined, value: unknown) => {
    for (const pointer of validator(schema ?? NOTHING)(value).secrets)
      for (const [, text] of leaves(valueAt(value, pointer), "")) if (text !== "") found.add(text);
  };
  const mounted: readonly MountConfig<{ options?: unknown }>[] = [
    config.store,
    ...config.frontends,
    ...config.middleware,
    ...config.observers,
    ...config.providers.values(),
  ];
  for (const { token } of config.admin?.tokens ?? []) found.add(token);
  for (const part of proxySecrets(config.proxy)) found.add(part);
  if (config.admin?.oidc?.clientSecret) found.add(config.admin.oidc.clientSecret);
  for (const { definition, options } of mounted) collect(definition.options as Schema, options);
  for (const { definition, credentials } of config.providers.values())
    for (const { fields } of credentials) collect(definition.credential as Schema, fields);
  return [...found].sort((a, b) => b.length - a.length);
}
