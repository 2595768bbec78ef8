// What becomes of what people wrote, for one candidate: a pure function of facts, the worst of them winning.
// Its law: worse information never turns a refusal into acceptance, and unknown never passes.
import type { DataPolicy, EffectivePolicy, Feature, Privacy, Retention } from "../model/facts.ts";

export interface PolicyFacts {
  provider: DataPolicy | undefined;
  endpoint?: Partial<DataPolicy> | undefined;
  model?: Partial<DataPolicy> | undefined;
  /** More levels: what a provider says of this protocol or of models like this one. */
  exceptions?: readonly Partial<DataPolicy>[] | undefined;
  /** The operator's own word about this credential. */
  credential?: { declared: boolean; note?: string; until?: string } | undefined;
  features?: readonly Feature[] | undefined;
  /** What is spoken there: what is to be set in another protocol is never sent. null: native, and what is sent is not known. */
  protocol?: string | null | undefined;
  /** Shipped with the gateway, or vouched for by the operator. */
  trusted: boolean;
  now: number;
}

const UNKNOWN: Retention = { kind: "unknown" };
const ZERO: Retention = { kind: "zero" };
const RETENTION_ORDER = ["zero", "memory", "days", "until_deleted", "unknown"] as const;
const TRAINS_ORDER = ["no", "opt_out", "unknown", "yes"] as const;

export function effectivePolicy(of: PolicyFacts): EffectivePolicy {
  const because: string[] = [];
  const levels = [of.provider, of.endpoint, ...(of.exceptions ?? []), of.model]
    .filter((level) => level !== undefined)
    .map((level) => believed(level, of, because));
  const word = of.credential;
  const excluded = word?.declared === false;
  const unavailable = levels.some((l) => l.requires === "unavailable");
  const declared = word?.declared === true && holdsStill(word.until, of.now);
  const able = !excluded && !unavailable;

  let retention: Retention | undefined;
  let trains: DataPolicy["trains"] | undefined;
  let basis = "unknown";
  for (const level of levels) {
    const lifted = able && !declared && controlled(level, of.protocol);
    if (level.retention) {
      retention = worse(retention, lifted ? ZERO : level.retention);
      if (basis !== "control") basis = lifted ? "control" : "published";
    }
    if (level.trains)
      trains = worseTraining(trains, lifted ? untrained(level.trains) : level.trains);
  }
  retention ??= UNKNOWN;
  trains ??= "unknown";

  if (excluded) {
    retention = UNKNOWN;
    basis = "excluded";
    because.push("credential_excluded");
  } else if (unavailable) because.push("model_excluded");
  else if (declared) {
    retention = ZERO;
    trains = untrained(trains);
    basis = "declared";
  } else if (word?.declared) because.push("declaration_expired");
  else if (levels.some((l) => l.zeroWhen === "credential")) because.push("credential_not_declared");

  const said = levels.flatMap((l) => l.stateful ?? []);
  const stateful = levels.some((l) => l.stateful) ? [...new Set(said)] : undefined;
  const keeps = (of.features ?? []).filter((f) => lasts(f, stateful));
  if (keeps.length > 0) {
    retention = worse(retention, { kind: "until_deleted" });
    because.push(...keeps.map((f) => `feature_stateful:${f}`));
  }
  if (retention.kind === "days") because.push(`retention_days:${retention.days}`);
  else if (retention.kind !== "zero") because.push(`retention_${retention.kind}`);
  if (trains !== "no") because.push(`trains_${trains}`);
  return { ...merged(levels), stateful, retention, trains, basis, because };
}

/** What is not a promise is told by the most particular level; what must be sent, by all of them. */
function merged(levels: readonly Partial<DataPolicy>[]): Partial<DataPolicy> {
  const all: Partial<DataPolicy> = Object.assign({}, ...levels);
  const controls = levels.flatMap((l) => l.controls ?? []);
  const evidence = [...new Set(levels.flatMap((l) => l.evidence ?? []))];
  const oldest = levels.flatMap((l) => l.verifiedAt ?? []).toSorted()[0];
  return {
    ...all,
    ...(controls.length > 0 && { controls }),
    ...(evidence.length > 0 && { evidence }),
    ...(oldest !== undefined && { verifiedAt: oldest }),
  };
}

/** Zero by what is sent along: only where it is really sent. */
const controlled = (level: Partial<DataPolicy>, protocol: string | null | undefined): boolean =>
  level.zeroWhen === "control" &&
  protocol !== null &&
  (level.controls ?? []).some((c) => c.protocol === undefined || c.protocol === protocol);

/** A provider that keeps nothing learns from nothing; one that says that it does learn is believed. */
const untrained = (trains: DataPolicy["trains"]): DataPolicy["trains"] =>
  trains === "yes" ? "yes" : "no";

/** State is what lasts. Of tools that run elsewhere and of caches that outlive the day only those are known not to keep that a policy leaves out of its list. */
export function lasts(feature: Feature, stateful: readonly Feature[] | undefined): boolean {
  if (feature.startsWith("state.")) return true;
  if (stateful) return stateful.includes(feature);
  return feature.startsWith("hosted.") || feature === "cache.extended";
}

/** Whether a policy is good enough for what a request asks. */
export function satisfies(wanted: Privacy, policy: EffectivePolicy): boolean {
  if (wanted === "off") return true;
  if (policy.trains !== "no") return false;
  return (
    policy.retention.kind === "zero" ||
    (wanted === "required" && policy.retention.kind === "memory")
  );
}

/** What a level says, less what is not to be believed: expired claims, and zero without evidence or without trust. */
function believed(
  level: Partial<DataPolicy>,
  of: PolicyFacts,
  because: string[],
): Partial<DataPolicy> {
  if (!current(level.expires, of.now)) {
    because.push("policy_expired");
    // What was bad news is not forgotten by getting old.
    const trains = worseTraining(level.trains, "unknown");
    return { ...level, retention: UNKNOWN, trains, zeroWhen: undefined };
  }
  if (!of.trusted) {
    if (level.retention || level.zeroWhen === "control") because.push("policy_untrusted");
    return {
      ...level,
      ...(level.retention && { retention: worse(level.retention, UNKNOWN) }),
      ...(level.trains && { trains: worseTraining(level.trains, "unknown") }),
      zeroWhen: level.zeroWhen === "control" ? undefined : level.zeroWhen,
    };
  }
  const kind = level.retention?.kind;
  if ((kind === "zero" || kind === "memory" || level.zeroWhen === "control") && !evident(level)) {
    because.push("evidence_missing");
    return { ...level, retention: UNKNOWN, zeroWhen: undefined };
  }
  return level;
}

/** A full address, not a mention of one. */
const evident = (level: Partial<DataPolicy>): boolean =>
  (level.evidence ?? []).some((e) => /^https:\/\/[^/]+\/.+/.test(e) || e.startsWith("in-process:"));

function worse(a: Retention | undefined, b: Retention): Retention {
  if (!a) return b;
  const rank = (r: Retention) => RETENTION_ORDER.indexOf(r.kind);
  if (rank(a) < 0 || rank(b) < 0) return UNKNOWN;
  if (a.kind === "days" && b.kind === "days") return a.days >= b.days ? a : b;
  return rank(a) >= rank(b) ? a : b;
}

const worseTraining = (
  a: DataPolicy["trains"] | undefined,
  b: DataPolicy["trains"],
): DataPolicy["trains"] => {
  if (!a) return b;
  const rank = (t: DataPolicy["trains"]) => TRAINS_ORDER.indexOf(t);
  if (rank(a) < 0 || rank(b) < 0) return "unknown";
  return rank(a) >= rank(b) ? a : b;
};

/** A last day is a whole one. */
const holdsStill = (until: string | undefined, now: number): boolean =>
  until === undefined || Date.parse(until) + (/^\d{4}-\d\d-\d\d$/.test(until) ? DAY_MS : 0) > now;

const DAY_MS = 86_400_000;

/** A date that cannot be read has passed. */
function current(until: string | undefined, now: number): boolean {
  return until === undefined || Date.parse(until) > now;
}
