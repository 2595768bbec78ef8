// Forwards the telemetry of clients to the operator's collector: OTLP over HTTP. Nothing is stored,
// and a client never waits for the collector.
import type { Context, Opt, RequestHead, RouteResponse } from "tollgate/plugin";

export const SIGNALS = ["metrics", "logs", "traces"] as const;
export type Signal = (typeof SIGNALS)[number];

export interface TelemetryOptions {
  /** Base URL of the collector, without the path of the signal. */
  readonly url: string;
  readonly headers?: Opt<{ readonly [name: string]: string }>;
  readonly signals: readonly Signal[];
}

/** Maximum size of one export, and of all exports that are being forwarded, in bytes. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_BYTES_IN_FLIGHT = 32 * 1024 * 1024;
const MAX_IN_FLIGHT = 64;
const TIMEOUT_MS = 10_000;
/** Time in which at most one failure is logged, in milliseconds. */
const LOG_INTERVAL_MS = 60_000;

export class TelemetryRelay {
  readonly #ctx: Pick<Context, "fetch" | "log">;
  readonly #options: TelemetryOptions | undefined;
  #count = 0;
  #bytes = 0;
  #loggedAt = -Infinity;

  constructor(ctx: Pick<Context, "fetch" | "log">, options: TelemetryOptions | undefined) {
    this.#ctx = ctx;
    this.#options = options;
  }

  /** Variables that make clients export the forwarded signals. Undefined: there are none. */
  env(origin: string): Record<string, string> | undefined {
    const signals = this.#options?.signals ?? [];
    if (signals.length === 0) return undefined;
    const exporters = SIGNALS.map((one) => [
      `OTEL_${one.toUpperCase()}_EXPORTER`,
      signals.includes(one) ? "otlp" : "none",
    ]);
    return {
      CLAUDE_CODE_ENABLE_TELEMETRY: "1",
      ...(Object.fromEntries(exporters) as Record<string, string>),
      OTEL_EXPORTER_OTLP_ENDPOINT: origin,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
    };
  }

  /** Accepts an export. Signals that are not forwarded are discarded. */
  accept(signal: Signal, x: Pick<RequestHead, "headers">, body: Buffer): RouteResponse {
    if (body.length > MAX_BYTES)
      return {
        status: 413,
        body: { code: 3, message: `The export is larger than ${MAX_BYTES} bytes.` },
      };
    const type = x.headers["content-type"] ?? "application/x-protobuf";
    if (this.#options?.signals.includes(signal) === true)
      this.#forward(this.#options, signal, body, {
        "content-type": type,
        "content-encoding": [x.headers["content-encoding"] ?? []].flat()[0],
      });
    // An empty message is valid in both encodings.
    return type.includes("json")
      ? { status: 200, body: {} }
      : { status: 200, body: Buffer.alloc(0), headers: { "content-type": type } };
  }

  #forward(
    { url, headers }: TelemetryOptions,
    signal: Signal,
    body: Buffer,
    framing: Record<string, string | undefined>,
  ): void {
    if (this.#count >= MAX_IN_FLIGHT || this.#bytes + body.length > MAX_BYTES_IN_FLIGHT)
      return this.#report({ signal }, "telemetry dropped");
    this.#count++;
    this.#bytes += body.length;
    this.#ctx
      .fetch(`${url.replace(/\/+$/, "")}/v1/${signal}`, {
        method: "POST",
        headers: { ...framing, ...headers },
        body,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      })
      .then(async (answer) => {
        await answer.body?.cancel();
        if (!answer.ok) this.#report({ signal, status: answer.status }, "telemetry rejected");
      })
      .catch((error: unknown) => this.#report({ signal, err: error }, "telemetry not forwarded"))
      .finally(() => {
        this.#count--;
        this.#bytes -= body.length;
      });
  }

  #report(fields: Record<string, unknown>, message: string): void {
    const now = performance.now();
    if (now - this.#loggedAt < LOG_INTERVAL_MS) return;
    this.#loggedAt = now;
    this.#ctx.log.warn(fields, message);
  }
}
