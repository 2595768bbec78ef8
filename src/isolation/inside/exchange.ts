// Requests as they are known in the process of a plugin: the same object for the same request, however many hooks are asked of it.
import { fail } from "../../model/error.ts";
import { ToldRequests } from "../told-requests.ts";

type Said = Readonly<Record<string, unknown>>;
export interface RequestFrame {
  readonly x: Said & { readonly id: string };
  readonly request?: unknown;
}
/** What a hook did, in its order. */
export type HookDeeds = unknown[][];

const HEAD = [
  "id",
  "frontend",
  "method",
  "path",
  "address",
  "certificate",
  "params",
  "headers",
  "presents",
  "identity",
  "limits",
  "privacy",
];
const READ = ["protocol", "kind", "op", "name", "model", "stream", "features", "size"];

/** One request. What it does is noted, and told with the hook's answer. */
export class OutsideExchange {
  #said: Said = {};
  #request: unknown;
  #body: unknown;
  #aborter: AbortController | undefined;
  #over = false;
  /** Of the hook that is asked now. */
  does: HookDeeds = [];
  read: () => Promise<unknown> = () => fail("internal", "The body is not read here.");

  take({ x, request }: RequestFrame): this {
    this.#said = x;
    if (request !== undefined) this.#request = request;
    return this;
  }
  static {
    for (const member of [...HEAD, ...READ])
      Object.defineProperty(this.prototype, member, {
        get(this: OutsideExchange) {
          return this.#said[member];
        },
        enumerable: true,
      });
  }
  get query(): URLSearchParams {
    return new URLSearchParams(this.#said["query"] as string);
  }
  get request(): unknown {
    return this.#request ?? fail("internal", "x.request is not there before the body is read.");
  }
  get body(): unknown {
    return (
      this.#body ??
      fail("internal", "x.body reaches a plugin outside the gateway in edit alone: read x.request.")
    );
  }
  set body(fields: unknown) {
    this.#body = fields;
  }
  get signal(): AbortSignal {
    this.#aborter ??= new AbortController();
    if (this.#over) this.#aborter.abort();
    return this.#aborter.signal;
  }
  over(): void {
    this.#over = true;
    this.#aborter?.abort();
  }
  identify(who: unknown): void {
    this.does.push(["identify", who]);
    this.#said = { ...this.#said, identity: who };
  }
  tighten(to: string): void {
    this.does.push(["tighten", to]);
  }
  occupy(scope: string, most: number): void {
    this.does.push(["occupy", scope, most]);
  }
  header(name: string, value: string): void {
    this.does.push(["header", name, value]);
  }
  label(name: string, value: string): void {
    this.does.push(["label", name, value]);
  }
}

export class Exchanges {
  readonly #known = new ToldRequests<OutsideExchange>();

  of(frame: RequestFrame): OutsideExchange {
    const { id } = frame.x;
    let x = this.#known.get(id);
    if (!x) this.#known.put(id, (x = new OutsideExchange()));
    return x.take(frame);
  }
  gone(id: string): void {
    this.#known.get(id)?.over();
  }
  over(id: string): void {
    this.#known.take(id)?.over();
  }
}
