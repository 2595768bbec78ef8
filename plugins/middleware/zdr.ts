// Implements Service-ZDR: a client requests that no data of its request is retained, and the
// request is sent only to providers with zero data retention.
import { createHash } from "node:crypto";
import {
  defineMiddleware,
  fail,
  type Call,
  type Candidate,
  type EffectivePolicy,
  type Exclusion,
  type Json,
  type JsonObject,
  type Logger,
  type Outgoing,
  type Privacy,
  type UpstreamResponse,
} from "tollgate/plugin";

const PRIVACY_LEVELS: readonly Privacy[] = ["off", "required", "strict"];
const PRIVACY_BY_VALUE: Readonly<Record<string, Privacy>> = {
  required: "required",
  true: "required",
  "1": "required",
  strict: "strict",
  off: "off",
  false: "off",
  "0": "off",
};
const isLooser = (a: Privacy, b: Privacy) => PRIVACY_LEVELS.indexOf(a) < PRIVACY_LEVELS.indexOf(b);

export default defineMiddleware({
  api: 1,
  name: "zdr",
  summary: "Route requests to providers with zero data retention",
  stability: "beta",
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    properties: {
      default: {
        enum: ["off", "required", "strict"],
        default: "off",
        description:
          "Privacy of requests without a Service-ZDR header. A header can only be stricter",
      },
    },
  },
  setup: ({ default: floor }, ctx) => ({
    admit(x) {
      const requested = parseHeader(x.headers["service-zdr"]);
      const least = isLooser(x.privacy, floor) ? floor : x.privacy;
      if (requested !== undefined && isLooser(requested, least))
        fail(
          "forbidden",
          `Service-ZDR: ${requested} is less strict than the required level ${least}. Send a stricter level or omit the header.`,
          { code: "zdr_downgrade_forbidden", param: "Service-ZDR" },
        );
      x.requirePrivacy(floor);
      x.requirePrivacy(requested ?? "off");
    },

    route: (list, x) =>
      x.privacy === "off"
        ? list
        : list.map((c): Candidate | Exclusion =>
            satisfiesPrivacy(x.privacy, c.policy)
              ? c
              : {
                  candidate: c,
                  kind: "privacy",
                  code: "zdr_unavailable",
                  message: `${c.id}[${c.credential}]: ${c.policy.reasons.join(", ") || "not known to keep nothing"}`,
                },
          ),

    prepare(out, call) {
      if (call.exchange.privacy === "off") return;
      for (const control of call.policy.controls ?? []) {
        if (control.protocol !== undefined && control.protocol !== call.protocol) continue;
        for (const [field, value] of Object.entries(control.set ?? {})) {
          const had = out.get(field);
          if (had === true && value === false)
            fail(
              "invalid",
              `${field}: true is not allowed, because it stores data that Service-ZDR excludes. Omit the field.`,
              {
                code: "zdr_feature_conflict",
                param: field,
              },
            );
          out.set(field, isObject(value) && isObject(had) ? { ...had, ...value } : value);
        }
        for (const [field, more] of Object.entries(control.add ?? {}))
          out.set(field, [
            ...new Set([...((out.get(field) as Json[] | undefined) ?? []), ...more]),
          ]);
        for (const [name, value] of Object.entries(control.headers ?? {}))
          out.setHeader(name, value);
      }
      if (call.exchange.privacy === "strict")
        for (const field of PROMPT_CACHE_FIELDS)
          if (out.get(field) !== undefined) out.remove(field);
      hashUserFields(out, call.exchange.identity?.id ?? "");
    },

    attempt: (call, next) =>
      call.exchange.privacy === "off" ? next() : requireAttestation(call, next, ctx.log),
  }),
});

async function requireAttestation(
  call: Call,
  next: () => Promise<UpstreamResponse>,
  log: Logger,
): Promise<UpstreamResponse> {
  const x = call.exchange;
  const { policy } = call;
  if (!satisfiesPrivacy(x.privacy, policy))
    fail("privacy", `${call.id} does not satisfy Service-ZDR: ${x.privacy}.`, {
      code: "zdr_unavailable",
      param: "Service-ZDR",
    });
  const reply = await next();
  const { attest } = policy;
  if (attest && reply.headers[attest.header] !== attest.equals) {
    log.error(
      { provider: call.provider, credential: call.credential, header: attest.header },
      "upstream did not attest zero retention",
    );
    fail("attestation", "The provider did not confirm zero data retention for this response.", {
      code: "zdr_attestation_failed",
    });
  }
  return reply;
}

/**
 * Parses the header. Rejects an invalid value, because ignoring it would violate the client's
 * intent.
 */
function parseHeader(header: string | string[] | undefined): Privacy | undefined {
  if (header === undefined) return undefined;
  const values = new Set(
    [header]
      .flat()
      .flatMap((h) => h.split(","))
      .map((v) => v.trim().toLowerCase())
      .map((v) => (Object.hasOwn(PRIVACY_BY_VALUE, v) ? PRIVACY_BY_VALUE[v] : undefined)),
  );
  const [value] = values;
  if (values.size !== 1 || value === undefined)
    return fail("invalid", "Service-ZDR must be one of: required, strict, off.", {
      code: "invalid_service_zdr",
      param: "Service-ZDR",
    });
  return value;
}

const satisfiesPrivacy = (wanted: Privacy, { retention, trains }: EffectivePolicy): boolean =>
  trains === "no" &&
  (retention.kind === "zero" || (wanted === "required" && retention.kind === "memory"));

/** Fields that control a prompt cache, which stores request data in memory. */
const PROMPT_CACHE_FIELDS = ["prompt_cache_key", "prompt_cache_retention", "prompt_cache_options"];

/** Hashes user IDs, so that the provider can distinguish users but not identify them. */
function hashUserFields(out: Outgoing, key: string): void {
  const hashed = (name: string) =>
    createHash("sha256").update(`${key}\n${name}`).digest("hex").slice(0, 32);
  for (const field of ["user", "safety_identifier"]) {
    const name = out.get(field);
    if (typeof name === "string" && name !== "") out.set(field, hashed(name));
  }
  const metadata = out.get("metadata");
  if (isObject(metadata) && typeof metadata["user_id"] === "string")
    out.set("metadata", { ...metadata, user_id: hashed(metadata["user_id"]) });
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value);
