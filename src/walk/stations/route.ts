import { wallClock } from "../../lib/wall-clock.ts";
import { pathNamed } from "../upstream/path.ts";
import { lasts, satisfies } from "../../catalogue/policy.ts";
import type { ErrorKind } from "../../model/error.ts";
import type { Feature } from "../../model/facts.ts";
import type { ModelRequest } from "../../model/request.ts";
import type { Work } from "../../model/work.ts";
import type { Candidate } from "../../plugin/call.ts";
import type { Exchange } from "../../plugin/exchange.ts";
import type { Survey } from "../../plugin/survey.ts";
import type { ReceivedBody } from "../received-body.ts";
import type { Generation } from "../generation.ts";
import type { HostCandidate, MountedFrontend } from "../mounted.ts";
import { watcherOf, type Hook } from "../hooks.ts";
import type { LeftOut, RouteFindings } from "../candidates/findings.ts";
import { clientOf } from "../candidates/client-retries.ts";
import { leave, noneLeft } from "../candidates/left-out.ts";
import { atOneAccount } from "../candidates/one-account.ts";
import { oneEach } from "../candidates/one-each.ts";
import { matches } from "../candidates/pattern.ts";
import { permit } from "../answer/pictures.ts";
import { policyOf } from "../candidates/policy.ts";
import { keptBy, reaching } from "../candidates/privacy.ts";
import { placed } from "../choosing/placed.ts";
import type { PickInputs } from "../choosing/pick.ts";
import type { May, Resolution } from "../candidates/resolution.ts";

/** What is routed: the exchange as hooks see it, and what the host knows of it besides. */
export interface RouteInputs {
  readonly gen: Pick<Generation, "resolver" | "rests" | "catalogue" | "usual">;
  readonly frontend: MountedFrontend;
  readonly x: Exchange;
  readonly work: Work;
  readonly survey: Survey;
  readonly pinned: ReceivedBody["pinned"];
  readonly findings: RouteFindings;
  /** As middleware changed it; absent: it is the client's own. */
  readonly rewritten?: ModelRequest | undefined;
  /** In place of chance and of what this process has measured, where nothing is asked. */
  readonly supposed?: Pick<PickInputs, "chance" | "reckoned">;
}

export interface Plan {
  readonly candidates: readonly HostCandidate[];
  /** Other endpoints of the same candidates: what one wire cannot say, another may. */
  readonly others: readonly HostCandidate[];
  readonly on: ReadonlySet<ErrorKind>;
  readonly resolution: Resolution;
  /** What was left out, and why; `explain` prints it. */
  readonly out: readonly LeftOut[];
}

/** Finds the candidates that could serve it: capability, permission, privacy and the route hooks may leave some out. */
export function route(of: RouteInputs): Plan | Promise<Plan> {
  const { findings, frontend, gen, x } = of;
  const { out } = findings;
  permit(x);
  const allowed = x.identity?.models;
  const may: May = (name) => allowed?.some((pattern) => matches(pattern, name)) ?? true;
  const resolution = gen.resolver.resolve(frontend, x.model, x.stream, may);
  findings.resolution = resolution;
  // Before the hooks: they see candidates in the order in which they would be tried, and what they make of it stays.
  const list = hooked(of, placed(of, resolution, sifted(of, resolution.candidates, may, out)), out);
  return "then" in list
    ? list.then((candidates) => planned(of, candidates, resolution, may, out))
    : planned(of, list, resolution, may, out);
}

/** By what is known of them and of the request. */
function sifted(
  { frontend, x, work, survey, pinned }: RouteInputs,
  all: readonly HostCandidate[],
  may: May,
  out: LeftOut[],
): readonly HostCandidate[] {
  // Something that is read again belongs to this key, as the ledger's row says. Something that goes on is asked of a model: the
  // key must be allowed that model, by the name in the request or by its own.
  const asked = x.body["model"];
  const named =
    may(x.model) ||
    (pinned !== undefined && (x.op === "relay" || (typeof asked === "string" && may(asked))));
  let candidates = all.filter((candidate) => {
    if (!named && !may(candidate.id))
      return leave(
        out,
        candidate,
        "key",
        "forbidden",
        "model_not_allowed",
        "this key may not use it",
      );
    if (pinned && (pinned.credential !== candidate.credential || candidate.protocol !== x.protocol))
      return leave(out, candidate, "state", "not_found", "not_found", "it was made elsewhere");
    if (!answers(candidate, x))
      return leave(
        out,
        candidate,
        "endpoint",
        "unsupported",
        "no_such_operation",
        `its endpoint has no ${x.name}`,
      );
    const lacks = lacking(candidate, survey.features);
    if (lacks)
      return leave(
        out,
        candidate,
        "catalogue",
        "unsupported",
        "capability",
        `it does not do ${lacks}`,
      );
    if (!survey.features.includes("n") || !work.oneTranslated) return true;
    if (candidate.lane === "translated")
      return leave(
        out,
        candidate,
        "lane",
        "unsupported",
        "n_not_translated",
        "n above 1 only travels verbatim",
      );
    // A watcher is shown the events of one answer: the others would pass unseen.
    const watcher = watcherOf(frontend.chain, x.model, candidate.provider);
    if (watcher !== undefined)
      return leave(
        out,
        candidate,
        watcher,
        "unsupported",
        "n_not_watched",
        "n above 1 cannot be watched, and here answers are",
      );
    return true;
  });
  if (!pinned && survey.named?.some((one) => one.kind === "state" && one.does === "names"))
    candidates = atOneAccount(candidates, out);
  if (survey.translate)
    candidates = candidates.map((candidate) => ({ ...candidate, lane: "translated" }));
  if (x.privacy === "off") return candidates;
  return candidates.flatMap((candidate) => {
    const kept = keptBy(candidate, survey.features);
    const conflicts = kept !== undefined && satisfies(x.privacy, candidate.policy);
    if (conflicts)
      leave(out, candidate, "privacy", "invalid", "zdr_feature_conflict", `keeps ${kept}`);
    return conflicts ? [] : [narrowed(candidate, survey.features)];
  });
}

/** A hook that gives back the list that it got has said nothing, and costs no wait. */
function hooked(
  { x, frontend, gen }: RouteInputs,
  candidates: readonly HostCandidate[],
  out: LeftOut[],
): readonly HostCandidate[] | Promise<readonly HostCandidate[]> {
  const hooks = frontend.chain.route;
  let shown: readonly HostCandidate[] | undefined;
  for (const [i, hook] of hooks.entries()) {
    if (!hook.applies(x.model, undefined)) continue;
    shown ??= candidates.map((candidate) => rested(candidate, gen.rests, clientOf(x)));
    // Its own copy: a hook that writes into it has said something too.
    const own = [...shown];
    const said = hook.run(own, x);
    if (said !== own || !alike(own, shown))
      return heard(x, { candidates, shown }, hooks.slice(i), said, out);
  }
  return candidates;
}

/** With its rest, for hooks: what is kept of a candidate is true for longer. */
function rested(candidate: HostCandidate, rests: Generation["rests"], who: string): HostCandidate {
  const resting = rests.resting(candidate, who);
  return resting ? { ...candidate, resting } : candidate;
}

const alike = (a: readonly HostCandidate[], b: readonly HostCandidate[]): boolean =>
  a.length === b.length && a.every((candidate, i) => candidate === b[i]);

/** A hook may leave out and reorder; what a candidate is, it may not say. */
async function heard(
  x: Exchange,
  { candidates, shown }: { candidates: readonly HostCandidate[]; shown: readonly HostCandidate[] },
  hooks: readonly Hook<"route">[],
  first: ReturnType<Hook<"route">["run"]>,
  out: LeftOut[],
): Promise<readonly HostCandidate[]> {
  const own = new Map(shown.map((candidate, i) => [nameOf(candidate), i]));
  let list = shown;
  for (const [i, hook] of hooks.entries()) {
    if (!hook.applies(x.model, undefined)) continue;
    const kept: HostCandidate[] = [];
    for (const one of await (i === 0 ? first : hook.run(list, x))) {
      if ("candidate" in one) out.push({ ...one, by: hook.id });
      else if (own.has(nameOf(one))) kept.push(shown[own.get(nameOf(one))!]!);
    }
    list = kept;
  }
  return list.map((one) => candidates[own.get(nameOf(one))!]!);
}

function planned(
  of: RouteInputs,
  left: readonly HostCandidate[],
  resolution: Resolution,
  may: May,
  out: LeftOut[],
): Plan {
  const { x, gen } = of;
  const { rests } = gen;
  const list =
    x.privacy === "off"
      ? left
      : left.filter(
          (c) =>
            (satisfies(x.privacy, c.policy) && !rests.distrusted(c)) ||
            leave(
              out,
              c,
              "privacy",
              "privacy",
              "zdr_unavailable",
              c.policy.because.join(", ") || "its provider did not attest zero retention lately",
            ),
        );
  const chosen = oneEach(list, of);
  const { on } = resolution;
  if (chosen.length === 0) noneLeft(of, out, may);
  const others = list.length === chosen.length ? [] : list.filter((c) => !chosen.includes(c));
  if (chosen.length === 1) return { candidates: chosen, others, on, resolution, out };
  const who = clientOf(x);
  const { candidates, rested } = rests.inOrder(chosen, who);
  if (rested.length === 0) return { candidates, others, on, resolution, out };
  of.findings.rested = rested.flatMap((candidate) => {
    const why = rests.resting(candidate, who)?.why;
    return why ? [{ candidate, why }] : [];
  });
  return { candidates, others, on, resolution, out };
}

const nameOf = ({ id, credential, protocol }: Candidate): string =>
  `${id}\n${credential}\n${protocol}`;

/** Features that a model may lack: the host makes the stream, and codecs leave out what is said of thinking. */
const SPARED: ReadonlySet<Feature> = new Set(["stream", "reasoning"]);

/** Whether an endpoint has this operation. A token count can always be estimated; a native endpoint refuses by itself. */
function answers({ "~": { endpoint } }: HostCandidate, { op, name }: Exchange): boolean {
  const { wire, protocol } = endpoint;
  return op === "count" || !wire || pathNamed(name, wire.endpoint, protocol!) !== undefined;
}

/** A feature that the model is known not to have. What is not known is forwarded. */
function lacking(candidate: HostCandidate, features: readonly Feature[]): Feature | undefined {
  const can = candidate.info.can;
  const here = candidate["~"].endpoint.endpoint.can;
  if (!can && !here) return undefined;
  return features.find((f) => !SPARED.has(f) && (can?.[f] ?? here?.[f]) === false);
}

/** A feature that is asked for may keep data for longer than the model itself does. */
function narrowed(candidate: HostCandidate, asked: readonly Feature[]): HostCandidate {
  const features = reaching(candidate, asked);
  if (!features.some((f) => lasts(f, candidate.policy.stateful))) return candidate;
  return { ...candidate, policy: policyOf(candidate["~"], candidate.info, wallClock(), features) };
}
