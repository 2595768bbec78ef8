// Runs a request in the background. The pipeline writes the response for the frontend, and the
// client receives a response of the frontend.
import type { ServerResponse } from "node:http";
import { fail, getFault } from "../model/error.ts";
import type { Body } from "../model/values.ts";
import type { BackgroundEnd, BackgroundRun, RouteResponse } from "../plugin/frontend.ts";
import type { BackgroundRequest, HostExchange } from "./exchange/exchange.ts";
import { clientKey } from "./exchange/client-retries.ts";
import type { HostCandidate } from "./exchange/mounted.ts";
import { attributeFault } from "./faults/fault-source.ts";
import { SCOPE_EXHAUSTED } from "./metering/charges.ts";
import { planBackground } from "./plan-job.ts";
import { EventResponse, type WholeResponse } from "./sockets/event-response.ts";
import { sendAnswer, type ClientConnection } from "./stages/serve.ts";

/** Separates the request from its client. Called when the body was read. */
export function runInBackground(x: HostExchange, run: BackgroundRun): void {
  if (x.subrequestOrigin || x.session)
    fail("unsupported", "Only a request over HTTP can run in the background.", {
      param: "background",
    });
  if (!x.stream) throw new Error("A request in the background has to be streamed.");
  new DetachedRequest(x, run).start();
}

class DetachedRequest implements BackgroundRequest {
  readonly #x: HostExchange;
  readonly #run: BackgroundRun;
  readonly #client: ClientConnection;
  readonly #response: ServerResponse;
  /** The request before the hooks of middleware, which edit it again when a job ends. */
  readonly #body: Body;
  /** Whether the provider runs the request, so the run is not used. */
  #isJob = false;
  #accepting: Promise<void> | undefined;
  #isAccepted = false;
  #isTruncated = false;
  #error: BackgroundEnd["error"];
  /** Events are passed one after the other. */
  #passing: Promise<void> | undefined;

  constructor(x: HostExchange, run: BackgroundRun) {
    this.#x = x;
    this.#run = run;
    this.#body = x.state.body.received!.body;
    const { res, isDisconnected } = x.state.connection;
    this.#client = { res, isDisconnected, disconnectListeners: [], bytesOut: 0 };
    this.#response = new EventResponse({
      onEvent: (data) => this.#pass(data),
      onWhole: (whole) => this.#onWhole(whole),
      onTruncated: () => this.#onTruncated(),
      whenWritable: () => this.#passing,
    }).asServerResponse;
  }

  start(): void {
    const { res } = this.#client;
    this.#x.runInBackground(this, this.#response);
    res.on("close", () => {
      if (res.writableFinished) return;
      this.#client.isDisconnected = true;
      // Without the response, the client does not know of the request.
      if (!this.#isAccepted) this.#response.destroy();
      for (const leave of this.#client.disconnectListeners) leave();
    });
    const { signal } = this.#run;
    signal.addEventListener("abort", this.#cancel, { once: true });
    if (signal.aborted || this.#client.isDisconnected) this.#cancel();
  }

  cancel(): void {
    this.#response.destroy();
  }
  readonly #cancel = (): void => this.cancel();

  async startJob(candidates: readonly HostCandidate[]): Promise<boolean> {
    const x = this.#x;
    const { gen, billing } = x.state;
    const [first] = candidates;
    if (!first || x.privacy !== "off" || gen.targetHealth.statusOf(first, clientKey(x)))
      return false;
    let planned;
    try {
      planned = planBackground(x, first, this.#body);
    } catch {
      // Another candidate may be able to run the request.
      return false;
    }
    if (!planned) return false;
    let answer;
    try {
      answer = await this.#run.startJob!(planned);
    } catch (error) {
      const { kind, code } = getFault(error) ?? {};
      // Nothing was sent. The gateway routes the request to the other model of the scope.
      if (code === SCOPE_EXHAUSTED.code && gen.scopes.hasDowngrades) return false;
      billing.isJob = kind === "upstream" || kind === "timeout";
      throw attributeFault(error, "gateway");
    }
    if (!answer) return false;
    billing.isJob = true;
    this.#isJob = true;
    if (!this.#client.isDisconnected) this.#sendAnswer(answer);
    if (!this.#response.destroyed) this.#response.end();
    return true;
  }

  accept(): Promise<void> {
    return (this.#accepting ??= this.#accept());
  }

  async #accept(): Promise<void> {
    let answer: RouteResponse;
    try {
      answer = await this.#run.accept();
    } catch (error) {
      // No other candidate would be accepted either.
      throw attributeFault(error, "gateway");
    }
    this.#sendAnswer(answer);
  }

  #sendAnswer(answer: RouteResponse): void {
    this.#isAccepted = true;
    // The response can be a stream that is as long as the request.
    sendAnswer(this.#x, answer, this.#client).catch((err: unknown) => {
      if (this.#client.isDisconnected) return;
      this.#x.state.gen.log.error({ request: this.#x.id, err }, "background response not sent");
      this.#client.res.destroy();
    });
  }

  #pass(data: string): void {
    const passed = (this.#passing ?? this.accept()).then(() => this.#run.onEvent(data));
    const passing = passed.then(
      () => {
        if (this.#passing === passing) this.#passing = undefined;
      },
      (err: unknown) => {
        this.#x.state.gen.log.error({ request: this.#x.id, err }, "background event not stored");
        this.#cancel();
      },
    );
    this.#passing = passing;
  }

  /** Called with an error, because the response is streamed. */
  #onWhole({ status, headers, body }: WholeResponse): void {
    if (this.#isJob) return;
    if (this.#isAccepted) return void (this.#error = { status, body });
    const { res } = this.#client;
    if (this.#client.isDisconnected) return;
    res.writeHead(status, headers as Record<string, string>);
    res.end(body);
  }

  #onTruncated(): void {
    this.#isTruncated = true;
    const { res } = this.#client;
    if (!this.#isAccepted && !res.headersSent) res.destroy();
  }

  async end(): Promise<void> {
    this.#run.signal.removeEventListener("abort", this.#cancel);
    if (!this.#response.writableFinished && !this.#response.destroyed)
      await new Promise((resolve) => this.#response.once("close", resolve));
    await this.#passing;
    if (!this.#isAccepted || this.#isJob) return;
    const end = { isTruncated: this.#isTruncated, error: this.#error };
    await this.#run.onEnd(end).catch((err: unknown) => {
      this.#x.state.gen.log.error({ request: this.#x.id, err }, "background response not stored");
    });
  }
}
