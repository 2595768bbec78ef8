// Computes the effective data policy of one candidate. It is a pure function of all statements, and
// the least private statement applies. Invariants: worse information never turns a rejection into
// acceptance, and an unknown policy never qualifies.
import type { DataPolicy, EffectivePolicy, Feature, Privacy, Retention } from "../model/facts.ts";

export interface PolicyInputs {
  provider: DataPolicy | undefined;
  endpoint?: Partial<DataPolicy> | undefined;
  model?: Partial<DataPolicy> | undefined;
  /**
   * Statements of further levels: the provider's statements about this protocol or about a group of
   * models.
   */
  exceptions?: readonly Partial<DataPolicy>[] | undefined;
  /** The operator's own statement about this credential. */
  credential?: { declared: boolean; note?: string; until?: string } | undefined;
  features?: readonly Feature[] | undefined;
  /**
   * Protocol of the call. Controls of another protocol are not sent. `null`: a native endpoint, for
   * which the sent controls are unknown.
   */
  protocol?: string | null | undefined;
  /** Whether the facts ship with the gateway or are confirmed by the operator. */
  trusted: boolean;
  now: number;
}

const UNKNOWN: Retention = { kind: "unknown" };
const ZERO: Retention = { kind: "zero" };
const RETENTION_ORDER = ["zero", "memory", "days", "until_deleted", "unknown"] as const;
const TRAINS_ORDER = ["no", "opt_out", "unknown", "yes"] as const;

export function effectivePolicy(of: PolicyInputs): EffectivePolicy {
  const because: string[] = [];
  const levels = [of.provider, of.endpoint, ...(of.exceptions ?? []), of.model]
    .filter((level) => level !== undefined)
    .map((level) => discountUntrusted(level, of, because));
  const declaration = of.credential;
  const excluded = declaration?.declared === false;
  const unavailable = levels.some((l) => l.requires === "unavailable");
  const declared = declaration?.declared === true && isDeclarationValid(declaration.until, of.now);
  const able = !excluded && !unavailable;

  let retention: Retention | undefined;
  let trains: DataPolicy["trains"] | undefined;
  let basis = "unknown";
  for (const level of levels) {
    const lifted = able && !declared && isControlSent(level, of.protocol);
    if (level.retention) {
      retention = worseRetention(retention, lifted ? ZERO : level.retention);
      if (basis !== "control") basis = lifted ? "control" : "published";
    }
    if (level.trains)
      trains = worseTraining(
        trains,
        lifted ? trainingUnderZeroRetention(level.trains) : level.trains,
      );
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
    trains = trainingUnderZeroRetention(trains);
    basis = "declared";
  } else if (declaration?.declared) because.push("declaration_expired");
  else if (levels.some((l) => l.zeroWhen === "credential")) because.push("credential_not_declared");

  const statefulFeatures = levels.flatMap((l) => l.stateful ?? []);
  const stateful = levels.some((l) => l.stateful) ? [...new Set(statefulFeatures)] : undefined;
  const keeps = (of.features ?? []).filter((f) => isStateful(f, stateful));
  if (keeps.length > 0) {
    retention = worseRetention(retention, { kind: "until_deleted" });
    because.push(...keeps.map((f) => `feature_stateful:${f}`));
  }
  if (retention.kind === "days") because.push(`retention_days:${retention.days}`);
  else if (retention.kind !== "zero") because.push(`retention_${retention.kind}`);
  if (trains !== "no") because.push(`trains_${trains}`);
  return { ...mergeLevels(levels), stateful, retention, trains, basis, reasons: because };
}

/**
 * Merges fields that are not promises. The most specific level takes precedence, except that
 * controls and evidence are collected from all levels.
 */
function mergeLevels(levels: readonly Partial<DataPolicy>[]): Partial<DataPolicy> {
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

/** Whether the control that makes retention zero is actually sent. */
const isControlSent = (level: Partial<DataPolicy>, protocol: string | null | undefined): boolean =>
  level.zeroWhen === "control" &&
  protocol !== null &&
  (level.controls ?? []).some((c) => c.protocol === undefined || c.protocol === protocol);

/**
 * A provider that retains nothing cannot train on the content. However, if the data policy
 * states that the provider trains, that value is kept.
 */
const trainingUnderZeroRetention = (trains: DataPolicy["trains"]): DataPolicy["trains"] =>
  trains === "yes" ? "yes" : "no";

/**
 * Whether a feature keeps state. All features named `state.*` keep state. For
 other features, the policy's
 * list of stateful features decides. Without a list, hosted tools and extended caches are assumed
 * to keep state.
 */
export function isStateful(feature: Feature, stateful: readonly Feature[] | undefined): boolean {
  if (feature.startsWith("state.")) return true;
  if (stateful) return stateful.includes(feature);
  return feature.startsWith("hosted.") || feature === "cache.extended";
}

/** Whether a policy satisfies the privacy that a request requires. */
export function satisfies(wanted: Privacy, policy: EffectivePolicy): boolean {
  if (wanted === "off") return true;
  if (policy.trains !== "no") return false;
  return (
    policy.retention.kind === "zero" ||
    (wanted === "required" && policy.retention.kind === "memory")
  );
}

/**
 * Returns a level without the claims that must not be trusted: expired claims, and zero retention
 * without evidence or trust.
 */
function discountUntrusted(
  level: Partial<DataPolicy>,
  of: PolicyInputs,
  because: string[],
): Partial<DataPolicy> {
  if (!isPolicyCurrent(level.expires, of.now)) {
    because.push("policy_expired");
    // A known negative statement remains valid after the policy expires.
    const trains = worseTraining(level.trains, "unknown");
    return { ...level, retention: UNKNOWN, trains, zeroWhen: undefined };
  }
  if (!of.trusted) {
    if (level.retention || level.zeroWhen === "control") because.push("policy_untrusted");
    return {
      ...level,
      ...(level.retention && { retention: worseRetention(level.retention, UNKNOWN) }),
      ...(level.trains && { trains: worseTraining(level.trains, "unknown") }),
      zeroWhen: level.zeroWhen === "control" ? undefined : level.zeroWhen,
    };
  }
  const kind = level.retention?.kind;
  if (
    (kind === "zero" || kind === "memory" || level.zeroWhen === "control") &&
    !hasEvidenceUrl(level)
  ) {
    because.push("evidence_missing");
    return { ...level, retention: UNKNOWN, zeroWhen: undefined };
  }
  return level;
}

/** Requires a full URL, not just a host name. */
const hasEvidenceUrl = (level: Partial<DataPolicy>): boolean =>
  (level.evidence ?? []).some((e) => /^https:\/\/[^/]+\/.+/.test(e) || e.startsWith("in-process:"));

function worseRetention(a: Retention | undefined, b: Retention): Retention {
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

/** The last day is included completely. */
const isDeclarationValid = (until: string | undefined, now: number): boolean =>
  until === undefined || Date.parse(until) + (/^\d{4}-\d\d-\d\d$/.test(until) ? DAY_MS : 0) > now;

const DAY_MS = 86_400_000;

/** A date that cannot be parsed counts as past. */
function isPolicyCurrent(until: string | undefined, now: number): boolean {
  return until === undefined || Date.parse(until) > now;
}
