// What becomes of what people wrote, for one candidate: a pure function of facts, the worst of them winning.
// Its law: worse information never turns a refusal into acceptance, and unknown never passes.
import type { DataPolicy, EffectivePolicy, Feature, Privacy, Retention } from "../model/facts.ts";

export interface PolicyFacts {
  provider: DataPolicy | undefined;
  endpoint?: Partial<DataPolicy> | undefined;
  model?: Partial<DataPolicy> | undefined;
  /** The operator's own word about this credential. */
  credential?: { declared: boolean; note?: string; until?: string } | undefined;
  features?: readonly Feature[] | undefined;
  /** Shipped with the gateway, or vouched for by the operator. */
  trusted: boolean;
  now: number;
}

const UNKNOWN: Retention = { kind: "unknown" };
const RETENTION_ORDER = ["zero", "memory", "days", "until_deleted", "unknown"] as const;
const TRAINS_ORDER = ["no", "opt_out", "unknown", "yes"] as const;

export function effectivePolicy(of: PolicyFacts): EffectivePolicy {
  const because: string[] = [];
  const levels = [of.provider, of.endpoint, of.model]
    .filter((level) => level !== undefined)
    .map((level) => believed(level, of, because));
  const merged: Partial<DataPolicy> = Object.assign({}, ...levels);
  let retention = levels.reduce<Retention | undefined>(
    (worst, l) => (l.retention ? worse(worst, l.retention) : worst),
    undefined,
  );
  let trains = levels.reduce<DataPolicy["trains"] | undefined>(
    (worst, l) => (l.trains ? worseTraining(worst, l.trains) : worst),
    undefined,
  );
  const unavailable = levels.some((l) => l.requires === "unavailable");
  let basis = retention ? "published" : "unknown";
  retention ??= UNKNOWN;
  trains ??= "unknown";

  const word = of.credential;
  if (word?.declared === false) {
    retention = UNKNOWN;
    basis = "excluded";
    because.push("credential_excluded");
  } else if (unavailable) {
    because.push("model_excluded");
  } else if (word?.declared && current(word.until, of.now)) {
    retention = { kind: "zero" };
    if (trains !== "yes") trains = "no";
    basis = "declared";
  } else if (merged.zeroWhen === "control" && (merged.controls?.length ?? 0) > 0) {
    retention = { kind: "zero" };
    basis = "control";
  } else if (word?.declared) {
    because.push("declaration_expired");
  } else if (merged.zeroWhen === "credential") {
    because.push("credential_not_declared");
  }

  const stateful = (of.features ?? []).filter((f) => merged.stateful?.includes(f));
  if (stateful.length > 0) {
    retention = worse(retention, { kind: "until_deleted" });
    because.push(...stateful.map((f) => `feature_stateful:${f}`));
  }
  if (retention.kind === "days") because.push(`retention_days:${retention.days}`);
  else if (retention.kind !== "zero") because.push(`retention_${retention.kind}`);
  if (trains !== "no") because.push(`trains_${trains}`);
  return { ...merged, retention, trains, basis, because };
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

/** What a level says, less what nobody has to believe: expired claims, and zero without evidence or without trust. */
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

/** A date that cannot be read has passed. */
function current(until: string | undefined, now: number): boolean {
  return until === undefined || Date.parse(until) > now;
}
