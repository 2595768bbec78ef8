// Commands about models: the list of models, and the known facts of each model with source, cost,
// and retirement. The same commands work on the control socket of a running gateway and on a
// generation built from its file.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { chatOperation } from "../../model/operations/chat-operation.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import { formatHedge } from "../../config/sections/hedge.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { RoutingStrategy } from "../../model/route-settings.ts";
import type { Catalog, CatalogEntry, Listing } from "../../catalog/catalog.ts";
import type { FactSource } from "../../catalog/merge-facts.ts";
import { fail, getFault } from "../../model/error.ts";
import type { EffectivePolicy } from "../../model/facts.ts";
import type { Operation } from "../../model/request.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { Unit, Usage } from "../../model/usage.ts";
import { createPricedExample } from "../../money/price.ts";
import { nanoToDecimal } from "../../money/decimal.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import type { InputOf } from "../schema/command-specs.ts";
import { servesModels } from "../../pipeline/explain.ts";
import type { BuiltGeneration } from "../../runtime/generation/build-generation.ts";

/** A fact and its source. */
export interface ExplainedFact {
  /** Name of the fact: "limits.context". */
  readonly field: string;
  readonly value: Json;
  readonly source: FactSource;
}

export interface ExplainedModel {
  readonly id: string;
  readonly provider: string;
  readonly operation: Operation;
  /** Whether requests are rejected until a list contains the model. */
  readonly requiresListing: boolean;
  /**
   * Whether a source lists the model. An unlisted chat model is forwarded anyway, but an unlisted
   * image model is rejected.
   */
  readonly listed: boolean;
  readonly facts: readonly ExplainedFact[];
  readonly policy: EffectivePolicy | undefined;
  /** Cost of a typical request, in US dollars. Null if unknown. */
  readonly example: {
    readonly description: string;
    readonly usage: Usage;
    readonly usd: string | null;
    readonly lines: readonly {
      readonly unit: Unit;
      readonly count: number;
      readonly usd: string;
    }[];
  };
  /** Days until the retirement. Negative if the date has passed. */
  readonly retirement: { readonly on: string; readonly days: number } | undefined;
}

/** Result of `models.explain`. */
export interface ExplainedName {
  readonly name: string;
  /** The model, or the candidates of an alias in the order in which they are tried. */
  readonly models: readonly ExplainedModel[];
  /** Most similar listed names, if no source lists this name. */
  readonly suggestions: readonly string[];
}

const DAY_MS = 86_400_000;

/** A name under `models:` that refers to other models. */
export interface ModelAlias {
  /** Name as in gateway.yaml. A pattern contains `*`. */
  readonly name: string;
  /** Strategy that orders the candidates. */
  readonly pick: RoutingStrategy;
  /**
   * Delay before the next candidate is called in parallel, as in gateway.yaml: a duration, or
   * durations by call class.
   */
  readonly hedge: string | { readonly [of: string]: string } | undefined;
  /** Candidates in the order of gateway.yaml. */
  readonly targets: readonly {
    readonly model: string;
    readonly weight: number | undefined;
    /** Whether the model's provider is mounted, or whether `model` is an existing alias. */
    readonly mounted: boolean;
  }[];
}

export function createModelCommands(
  built: () => BuiltGeneration,
  routes: () => GatewayConfig["models"],
  now: () => number = wallClock,
) {
  return withInputChecks({
    "models.list": async (input) => ({
      models: listModels(built(), input),
      aliases: aliasesOf(routes(), built().providers),
    }),
    "models.explain": async ({ model }): Promise<ExplainedName> =>
      explainName(built(), model, now()),
  });
}

const aliasesOf = (
  routes: GatewayConfig["models"],
  providers: BuiltGeneration["providers"],
): readonly ModelAlias[] =>
  [...routes].map(([name, { pick, hedge, candidates, weights }]) => ({
    name,
    pick,
    hedge: hedge && formatHedge(hedge),
    targets: candidates.map((model) => ({
      model,
      weight: weights.get(model),
      mounted: routes.has(model) || providers.has(model.split("/", 1)[0]!),
    })),
  }));

function listModels(
  { gen, providers }: BuiltGeneration,
  { operation, provider, privacy = "off" }: InputOf<"models.list">,
): readonly Listing[] {
  const operations = [...gen.catalog.operations.keys()];
  if (operation !== undefined && !operations.includes(operation))
    fail("invalid", `Unknown operation. Use one of: ${operations.join(", ")}.`, {
      param: "/operation",
      code: "bad_input",
    });
  if (provider !== undefined) assertMounted(providers, provider);
  return gen.catalog.list({ operation: operation as Operation | undefined, provider, privacy });
}

/** Throws unless gateway.yaml mounts a provider of this name. */
export function assertMounted(providers: BuiltGeneration["providers"], name: string): string {
  return providers.has(name)
    ? name
    : fail(
        "not_found",
        `Unknown provider "${name}". Known providers: ${[...providers.keys()].join(", ") || "none"}.`,
        { code: "no_such_provider" },
      );
}

function explainName(built: BuiltGeneration, name: string, now: number): ExplainedName {
  const { catalog } = built.gen;
  const models = resolveModels(built, name).map((id) => explainModel(catalog, id, now));
  const strange = models.every(({ listed }) => !listed);
  return {
    name,
    models,
    suggestions: strange ? catalog.suggest(name, models[0]?.operation) : [],
  };
}

/** Returns the models that a name resolves to, over all frontends. */
function resolveModels(
  { gen, frontends, providers }: BuiltGeneration,
  name: string,
): readonly string[] {
  let refused: unknown;
  for (const frontend of frontends) {
    if (!servesModels(frontend)) continue;
    try {
      const { candidates } = gen.resolver.resolve(frontend, name, false);
      return [...new Set(candidates.map(({ id }) => id))];
    } catch (problem) {
      if (!getFault(problem)) throw problem;
      refused ??= problem;
    }
  }
  if (providers.has(name.split("/", 1)[0]!) && name.includes("/")) return [name];
  throw refused ?? fail("not_found", "No frontend that serves models is configured.");
}

function explainModel(catalog: Catalog, id: string, now: number): ExplainedModel {
  const slash = id.indexOf("/");
  const provider = id.slice(0, slash);
  const found = catalog.find(provider, id.slice(slash + 1));
  const { info, listed } = found;
  const work = catalog.operations.get(info.operation);
  return {
    id,
    provider,
    operation: info.operation,
    listed,
    requiresListing: work?.requiresCatalogEntry ?? true,
    facts: listFacts(found),
    policy: catalog.listing(id)?.policy,
    example: priceExample(work, info, now),
    retirement:
      info.retires === undefined
        ? undefined
        : { on: info.retires, days: Math.ceil((Date.parse(info.retires) - now) / DAY_MS) },
  };
}

function priceExample(
  operation: OperationSpec | undefined,
  { price }: CatalogEntry["info"],
  now: number,
): ExplainedModel["example"] {
  const { description, usage, nano, lines } = createPricedExample(
    operation ?? chatOperation,
    operation && price,
    now,
  );
  return {
    description,
    usage,
    usd: nano === null ? null : nanoToDecimal(nano),
    lines: lines.map(({ unit, count, nano }) => ({ unit, count, usd: nanoToDecimal(nano) })),
  };
}

function listFacts({ info, sources }: CatalogEntry): readonly ExplainedFact[] {
  return Object.entries(sources).map(([field, source]) => {
    // Name of a group and of a fact in the group. The fact's name may contain a dot:
    // "can.state.store".
    const [, set = field, fact] = /^(\w+)\.(.+)$/.exec(field) ?? [];
    const value = (info as unknown as JsonObject)[set] as Json;
    return { field, value: fact === undefined ? value : (value as JsonObject)[fact]!, source };
  });
}
