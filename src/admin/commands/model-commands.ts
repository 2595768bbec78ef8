// Models, as an operator asks for them: what there is, and what is known of one, from which source, at what cost, until when. The
// same on the control socket of a running gateway and on a rehearsal of its file.
import { wallClock } from "../../lib/time/wall-clock.ts";
import { chatOperation } from "../../model/operations/chat-operation.ts";
import type { OperationSpec } from "../../model/operations/operation-spec.ts";
import { formatHedge } from "../../config/sections/hedge.ts";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import type { RoutingStrategy } from "../../model/routing-strategy.ts";
import type { Catalog, CatalogEntry } from "../../catalog/catalog.ts";
import type { Listing } from "../../catalog/listing.ts";
import type { FactSource } from "../../catalog/merge-facts.ts";
import { fail, getFault } from "../../model/error.ts";
import type { EffectivePolicy } from "../../model/facts.ts";
import type { Operation } from "../../model/request.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { Unit, Usage } from "../../model/usage.ts";
import { createPricedExample } from "../../money/price-example.ts";
import { nanoToDecimal } from "../../money/format-usd.ts";
import { withInputChecks } from "../dispatch/command-input.ts";
import type { InputOf } from "../schema/command-specs.ts";
import type { BuiltGeneration } from "../../runtime/generation/build-generation.ts";

/** One fact, and its source. */
export interface ExplainedFact {
  /** "limits.context" */
  readonly field: string;
  readonly value: Json;
  readonly source: FactSource;
}

export interface ExplainedModel {
  readonly id: string;
  readonly provider: string;
  readonly operation: Operation;
  /** It is refused until a list has it. */
  readonly requiresListing: boolean;
  /** A source says that it exists. A chat model that none lists is forwarded all the same, an image model is refused. */
  readonly listed: boolean;
  readonly facts: readonly ExplainedFact[];
  readonly policy: EffectivePolicy | undefined;
  /** What a plain request costs, in dollars; null: not known. */
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
  /** Days from now; below zero: it should be gone. */
  readonly retirement: { readonly on: string; readonly days: number } | undefined;
}

/** The answer of `models.explain`. */
export interface ExplainedName {
  readonly name: string;
  /** One, or those that an alias stands for, in the order in which they are tried. */
  readonly models: readonly ExplainedModel[];
  /** For a name that no source lists: the nearest that one does. */
  readonly suggestions: readonly string[];
}

const DAY_MS = 86_400_000;

/** A name under `models:` that stands for others. */
export interface ModelAlias {
  /** As gateway.yaml has it; a pattern has stars. */
  readonly name: string;
  /** How a candidate is chosen. */
  readonly pick: RoutingStrategy;
  /** When the next candidate is called as well, as gateway.yaml has it: a duration, or durations by class of call. */
  readonly hedge: string | { readonly [of: string]: string } | undefined;
  /** In the order in which gateway.yaml has them. */
  readonly targets: readonly {
    readonly model: string;
    readonly weight: number | undefined;
    /** Whether its provider is mounted; of another alias, whether it exists. */
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

/** Fails unless gateway.yaml mounts a provider of this name. */
export function assertMounted(providers: BuiltGeneration["providers"], name: string): string {
  return providers.has(name)
    ? name
    : fail(
        "not_found",
        `There is no provider "${name}". There are: ${[...providers.keys()].join(", ") || "none"}.`,
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

/** The models that a name leads to: those that a request for it would meet, whichever frontend it comes to. */
function resolveModels(
  { gen, frontends, providers }: BuiltGeneration,
  name: string,
): readonly string[] {
  let refused: unknown;
  for (const frontend of frontends) {
    if (!frontend.server) continue;
    try {
      const { candidates } = gen.resolver.resolve(frontend, name, false);
      return [...new Set(candidates.map(({ id }) => id))];
    } catch (problem) {
      if (!getFault(problem)) throw problem;
      refused ??= problem;
    }
  }
  if (providers.has(name.split("/", 1)[0]!) && name.includes("/")) return [name];
  throw refused ?? fail("not_found", "No frontend is mounted that speaks to models.");
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
    // A set and one fact of it, whose own name may have a dot: "can.state.store".
    const [, set = field, fact] = /^(\w+)\.(.+)$/.exec(field) ?? [];
    const said = (info as unknown as JsonObject)[set] as Json;
    return { field, value: fact === undefined ? said : (said as JsonObject)[fact]!, source };
  });
}
