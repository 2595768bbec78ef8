// Schemas of options whose values need no conversion: limits, times, and switches. The types of the
// resolved values are derived from these schemas.
import { BOUNDS } from "../../lib/bounds.ts";
import { formatSize } from "../../lib/time/units.ts";
import { PUBLIC_KEY_PATTERN } from "../../catalog/prices/price-document.ts";
import {
  attemptCount,
  closedObject,
  duration,
  flag,
  list,
  optionalDuration,
  path,
  positiveInteger,
  section,
  size,
  text,
} from "../schema-builders.ts";

const maxCount = (description: string, value: number) => ({
  ...positiveInteger(description),
  default: value,
});

const BOUNDS_SCHEMA = section("Size limits of data from clients and providers", {
  in_flight: size(
    "Total size of request bodies and buffered responses in the memory of one process. " +
      "Above this size, new requests are rejected with status 503",
    formatSize(BOUNDS.inFlight.max),
  ),
  json_values: maxCount("Maximum number of JSON values in one request", BOUNDS.jsonValues.max),
  response: size(
    "Maximum size of a response that is buffered or translated, without images",
    formatSize(BOUNDS.response.max),
  ),
  connections: maxCount("Maximum number of open connections per process", BOUNDS.connections.max),
  connections_per_address: maxCount(
    "Maximum number of open connections per client address. Raise it behind a proxy, " +
      "because all clients then share one address",
    BOUNDS.connectionsPerAddress.max,
  ),
  socket_message: size(
    "Maximum size of one message of a relayed WebSocket, such as a voice session",
    formatSize(BOUNDS.socketMessage.max),
  ),
});

const OVERLOAD_SCHEMA = section("Overload protection", {
  max_concurrent: maxCount(
    "Maximum number of concurrent calls per process. The gateway lowers the limit " +
      "automatically while its own processing is slow",
    10_000,
  ),
  max_queue_wait: duration("Maximum time that a request waits in the queue", "250ms"),
});

/** Long form of `shutdown`. */
export const SHUTDOWN_OPTIONS = {
  announce: optionalDuration(
    "Time for which all requests are still served after a shutdown starts, while " +
      "/readyz returns 503. Default: 5s if /readyz has been requested, otherwise 0",
  ),
  timeout: duration("Time for open requests to finish after the port is closed", "300s"),
};

const FILES_SCHEMA = section("Generated images that clients requested as URLs", {
  lifetime: duration("Validity of an image URL. Maximum: 7 days", "1h"),
  max_file: size("Maximum size of one image", "64MiB"),
  max_key: size("Maximum total size of the images of one key", "1GiB"),
  max_total: size(
    "Maximum total size of all images. Above this size, no more images are stored",
    "2GiB",
  ),
});

/** Headers that describe how a response was produced. */
const RESPONSE_HEADERS = [
  "server-timing",
  "x-tollgate-attempts",
  "x-tollgate-budget",
  "x-tollgate-cost",
  "x-tollgate-provider",
] as const;
export type ResponseHeaderName = (typeof RESPONSE_HEADERS)[number];

const LEDGER_SCHEMA = section("Settings of the ledger", {
  retention: optionalDuration(
    "How long rows are kept before rollups replace them. Minimum: 1d. If unset, rows " +
      "are kept forever",
  ),
});

const PRICES_SCHEMA = closedObject(
  {
    from: text("URL of the signed price document, or its path relative to gateway.yaml", {
      minLength: 1,
    }),
    every: duration("Refresh interval. Minimum: 1m", "24h"),
    key: text("Public key of the publisher: ed25519: and 32 bytes in base64", {
      pattern: PUBLIC_KEY_PATTERN,
      "x-expects": "a public key such as ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
    }),
    max_change: {
      type: "integer" as const,
      minimum: 0,
      maximum: 100_000,
      default: 50,
      description:
        "Largest change of a rate that applies without approval, in percent. Larger changes wait " +
        "for `tollgate models accept`",
    },
  },
  {
    required: ["from", "key"] as const,
    description:
      "Price feed: renews prices, capabilities, and retirement dates of models without a restart. " +
      "If unset, the prices of the release apply",
  },
);

const RETRIES_SCHEMA = section("Maximum number of attempts per request, including the first call", {
  per_target: attemptCount(
    "Maximum number of attempts per target. 1 disables retries on the same target",
    2,
  ),
  total: attemptCount("Maximum number of attempts across all targets", 3),
});

export const CORE_OPTIONS = {
  public_url: text("Public base URL for the links that the gateway returns to clients", {
    pattern: "^https?://",
    format: "uri",
    "x-expects": "a URL such as https://llm.example",
  }),
  state_dir: path(
    "State directory with keys, the ledger, and the last valid catalog, relative to " +
      "this file. A change requires a restart",
    { default: "./.tollgate" },
  ),
  allow_empty: flag("Whether a reload may remove all providers", false),
  strict: flag(
    "Whether to reject a request that cannot be translated exactly into another " +
      "protocol, instead of adding a warning",
    false,
  ),
  response_headers: list(
    { enum: RESPONSE_HEADERS },
    "Response headers with details of the call. They reveal information about the " +
      "gateway to clients",
    { uniqueItems: true, default: [] },
  ),
  retries: RETRIES_SCHEMA,
  max_body: size("Maximum size of a request", formatSize(BOUNDS.body.max)),
  bounds: BOUNDS_SCHEMA,
  overload: OVERLOAD_SCHEMA,
  catalog: section("Refresh of the providers' model lists", {
    refresh: duration("Refresh interval", "10m"),
  }),
  prices: PRICES_SCHEMA,
  files: FILES_SCHEMA,
  request_history: {
    type: "integer",
    minimum: 0,
    maximum: 100_000,
    default: 10_000,
    description:
      "Number of finished requests that the request history keeps for `tollgate " +
      "request`, `tail`, and `top`. 0 disables the history and the request statistics",
  },
  log: section("Logging of the gateway", {
    level: {
      enum: ["debug", "info", "warn", "error"],
      default: "info",
      description: "Lowest level that is logged",
    },
    slow_request: duration(
      "Time to the first byte of the response after which a request is logged as slow",
      "10s",
    ),
  }),
  ledger: LEDGER_SCHEMA,
} as const;
