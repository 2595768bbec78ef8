// What a request for a model would meet in a generation, in words for people and as data for programs.
import type { GatewayConfig, Timeouts } from "../../config/types.ts";
import { fail, faultOf } from "../../model/error.ts";
import type { ModelInfo } from "../../model/facts.ts";
import {
  explain,
  type RouteExplanation,
  type SupposedClient,
} from "../../walk/candidates/explain.ts";
import { classOf } from "../../walk/upstream/times.ts";
import type { BuiltGeneration } from "../generation/build.ts";
import type { HostCandidate } from "../../walk/mounted.ts";
import type { ExplainedCandidate, Explanation, RestingStatus, Status } from "../types.ts";
import { inTurn } from "./turns.ts";

export async function explainIn(
  built: BuiltGeneration,
  config: GatewayConfig,
  model: string,
  of: { name?: string | undefined; client?: SupposedClient } & Partial<
    Pick<Status, "resting" | "quarantined" | "speeds">
  > = {},
): Promise<Explanation> {
  const { name, client, resting = [], quarantined = [], speeds = [] } = of;
  const speaking = built.frontends.filter((f) => f.server);
  const frontend =
    name === undefined
      ? speaker(built, model)
      : speaking.find((f) => f.name === name || f.protocol?.id === name);
  if (!frontend)
    return fail(
      "not_found",
      `There is no frontend ${name ?? "that speaks to models"}. There are: ${speaking.map((f) => f.name).join(", ") || "none"}.`,
    );
  const reckoned = (candidate: HostCandidate) => speedOf(candidate, speeds);
  const explained = await explain(built.gen, frontend, model, reckoned, client).catch(
    (error: unknown) => {
      const absent = built.gen.resolver.absent(model);
      const fault = faultOf(error);
      if (!fault || absent.length === 0) throw error;
      return fail(fault.kind, `${fault.message} Left out: ${absent.join("; ")}.`, {
        code: fault.code,
        param: fault.param,
      });
    },
  );
  const first = explained.candidates[0]?.candidate ?? explained.excluded[0]?.candidate;
  const turns = inTurn(explained.candidates, ({ candidate }) => resting.filter(isOf(candidate)), {
    key: client?.identity?.id,
  });
  const hooks = Object.fromEntries(
    Object.entries(frontend.chain)
      .filter(([hook]) => hook !== "senders")
      .map(([hook, list]) => [hook, (list as readonly { id: string }[]).map((h) => h.id)]),
  );
  return {
    model,
    frontend: frontend.name,
    pick: explained.pick,
    candidates: [
      ...turns.map(({ of: { candidate, closedBy, place }, rest, turn, cooling }) => ({
        id: candidate.id,
        credential: candidate.credential,
        protocol: candidate.protocol,
        lane: candidate.lane,
        turn,
        cooling,
        closedBy,
        place,
        resting: rest && shownRest(rest),
      })),
      ...explained.excluded.map(({ candidate, by, code, message }) => ({
        id: candidate.id,
        credential: candidate.credential,
        protocol: candidate.protocol,
        lane: candidate.lane,
        excluded: { by, code, message },
      })),
    ],
    hooks,
    quarantined: quarantined.filter(({ plugin, hook }) => hooks[hook]?.includes(plugin)),
    hedge: hedgesOf(explained),
    timeouts: timesOf(
      built.providers.get(first?.provider ?? "")?.timeouts ?? config.timeouts,
      first?.info,
    ),
    notes: explained.notes,
  };
}

/** Whether an entry of `status` is about this candidate: about its model, or about everything that its credential leads to. */
const isOf =
  ({ provider, credential, model }: HostCandidate) =>
  ({ what }: RestingStatus): boolean =>
    what === `${provider} ${credential}` || what === `${provider} ${credential} ${model}`;

const shownRest = ({ what: _, ...rest }: RestingStatus): ExplainedCandidate["resting"] => rest;

/** Of a stream, as far as that is known. */
function speedOf({ provider, credential, model }: HostCandidate, speeds: Status["speeds"]): number {
  const its = speeds.filter(({ what }) => what === `${provider} ${credential} ${model}`);
  return (its.find(({ stream }) => stream) ?? its[0])?.reckonedMs ?? 0;
}

/** By class of its candidates, streamed and whole; undefined: the route does not hedge, or has no second candidate. */
function hedgesOf({ hedge, candidates }: RouteExplanation): Explanation["hedge"] {
  if (!hedge || candidates.length < 2) return undefined;
  const found = new Map<string, number>();
  for (const { candidate } of candidates)
    for (const stream of [true, false]) {
      const its = classOf({ info: candidate.info, stream });
      const afterMs = hedge.classes.get(its) ?? hedge.allMs;
      if (afterMs !== undefined) found.set(its, afterMs);
    }
  return [...found].map(([of, afterMs]) => ({ class: of, afterMs }));
}

/** The frontend on which a model of this kind, and best of its own protocol, is asked for. */
function speaker(
  { frontends, gen }: BuiltGeneration,
  model: string,
): BuiltGeneration["frontends"][number] | undefined {
  const lanes = frontends.flatMap((frontend) => {
    if (!frontend.server) return [];
    try {
      const [candidate] = gen.resolver.resolve(frontend, model, false).candidates;
      return candidate ? [{ frontend, lane: candidate.lane }] : [];
    } catch {
      return [];
    }
  });
  return (
    lanes.find(({ lane }) => lane === "verbatim")?.frontend ??
    lanes[0]?.frontend ??
    frontends.find((f) => f.server)
  );
}

/** As they are for a stream. */
function timesOf(
  { connectMs, classes, ...plain }: Timeouts,
  info: ModelInfo | undefined,
): Explanation["timeouts"] {
  const its = info && classes.get(classOf({ info, stream: true }));
  return { connectMs, ...plain, ...its };
}
