// Hooks that ask a plugin outside. Each is one question; events of an answer go to it in batches and come back as it lets them pass.
import { fail } from "../model/error.ts";
import type { Body } from "../model/values.ts";
import type { ModelRequest } from "../model/request.ts";
import type { Call, Candidate, RecordedAnswer, Reply } from "../plugin/call.ts";
import type { Arrival, Exchange } from "../plugin/exchange.ts";
import type { AttemptResult, Exclusion, Hooks, RouteResult } from "../plugin/middleware.ts";
import type { Outcome } from "../plugin/outcome.ts";
import { type AskingOptions, type LentAnswers, type OutsideLink, PluginFailure } from "./link.ts";
import { revived } from "./frames.ts";
import type { Connected, Stages } from "./stages.ts";
import type { ToldRequests } from "./told-requests.ts";
import {
  type OutsideHook,
  plainBody,
  plainCall,
  plainCandidate,
  plainExchange,
} from "./what-crosses.ts";

export interface Outside extends Connected {
  readonly stages: Stages;
  readonly told: ToldRequests<ToldRequest>;
  /** It says when it has heard that a request is over: a child does, and what listens at a socket in any language need not. */
  readonly echoes: boolean;
}

type X = Arrival & Partial<Exchange>;
type Said = Readonly<Record<string, unknown>>;

/** One request, and what was told of it already. */
export interface ToldRequest {
  readonly x: Arrival;
  readonly link: OutsideLink;
  request: boolean;
}

const isMapping = (it: unknown): it is Said =>
  typeof it === "object" && it !== null && !Array.isArray(it);

/** What a hook did beside its answer, in its order. Done here it is checked as any hook's is. */
function done(x: X, said: Said): void {
  const list = said["does"] ?? [];
  if (!Array.isArray(list) || list.length > 200)
    throw new PluginFailure("What it did is no list, or too long.");
  for (const one of list as readonly unknown[]) {
    if (!Array.isArray(one)) throw new PluginFailure("What it did cannot be used.");
    const [what, a, b] = one as unknown[];
    const texts = typeof a === "string" && typeof b === "string";
    if (what === "label" && texts) x.label(a, b);
    else if (what === "header" && texts) x.header(a, b);
    else if (what === "tighten" && typeof a === "string") x.tighten(a as never);
    else if (what === "occupy" && typeof a === "string" && typeof b === "number") x.occupy(a, b);
    else if (what === "identify" && isMapping(a) && typeof a["id"] === "string")
      x.identify(JSON.parse(JSON.stringify(a), revived) as never);
    else throw new PluginFailure("What it did is nothing that a hook can do.");
  }
}

/** `has`: the hooks that it said it has. */
export function outsideHooks(of: Outside, has: readonly OutsideHook[]): Hooks {
  const asking = new Asking(of, of.echoes && has.includes("watch"));
  const settles = has.includes("settle");
  const hooks: { [H in OutsideHook]: NonNullable<Hooks[H]> } = {
    admit: (x, credential) => asking.admit(x, credential),
    edit: (x) => asking.edit(x),
    rewrite: (request, x) => asking.rewrite(request, x),
    inspect: (request, x) => asking.inspect(request, x),
    route: (list, x) => asking.route(list, x),
    attempt: (call, next) => asking.attempt(call, next),
    event: (call, next, stop) => of.stages.event(of, call, next, stop, asking.about),
    watch: (call, stop) => of.stages.watch(of, call, stop, asking.about),
    settle: (x, outcome) => (settles ? asking.settle(x, outcome) : asking.over(x)),
  };
  // The end of a request is told whatever it has: what it keeps of it goes.
  const mine: readonly OutsideHook[] = [...has, "settle"];
  return Object.fromEntries(mine.map((hook) => [hook, hooks[hook]]));
}

class Asking {
  readonly #of: Outside;
  readonly #looks: boolean;

  constructor(of: Outside, looks: boolean) {
    this.#of = of;
    this.#looks = looks;
  }

  /** With the request, where it was not told of it yet. */
  readonly about = (link: OutsideLink, x: X): object => {
    const one = this.#told(link, x);
    const plain = plainExchange(x);
    if (one.request || !x.model || x.op === "relay") return { x: plain };
    one.request = true;
    return { x: plain, request: x.request };
  };

  admit(x: Arrival, credential: string | undefined): Promise<void> {
    const read = async () => this.about(await this.#of.link(), await x.read());
    const given = (link: OutsideLink) => {
      this.#told(link, x);
      return { x: plainExchange(x), credential };
    };
    return this.#ask("admit", x, given, nothing, { read });
  }

  edit(x: Exchange): Promise<Body | undefined> {
    const given = (link: OutsideLink) => {
      // Whatever it was told of the request may be another one after this.
      this.#told(link, x).request = false;
      return { x: plainExchange(x), body: plainBody(x.body) };
    };
    return this.#ask("edit", x, given, edited);
  }

  rewrite(request: ModelRequest, x: Exchange): Promise<ModelRequest> {
    return this.#ask("rewrite", x, this.#with(request, x), (said) =>
      said["request"] === undefined
        ? request
        : (JSON.parse(JSON.stringify(said["request"]), revived) as ModelRequest),
    );
  }

  inspect(request: ModelRequest, x: Exchange): Promise<void> {
    return this.#ask("inspect", x, this.#with(request, x), nothing);
  }

  route(list: readonly Candidate[], x: Exchange): Promise<RouteResult> {
    const candidates = list.map(plainCandidate);
    const given = (link: OutsideLink) => ({ ...this.about(link, x), candidates });
    return this.#ask("route", x, given, (said) =>
      said["list"] === undefined ? list : routed(said["list"], list),
    );
  }

  attempt(call: Call, next: () => Promise<Reply>): Promise<AttemptResult> {
    let reply: Reply | undefined;
    const x = call.exchange;
    const got = () => reply ?? fail("internal", "next() was not called.");
    const given = (link: OutsideLink) => ({ ...this.about(link, x), call: plainCall(call) });
    return this.#ask("attempt", x, given, (said) => attempted(said, reply), {
      next: async () => {
        reply = await next();
        const { status, headers, limits } = reply;
        return { status, headers, limits };
      },
      record: async (max: unknown) => {
        const answer = await got().record(typeof max === "number" ? max : 0);
        return answer && { ...answer, body: answer.body.toString("base64") };
      },
      settled: () => got().settled(),
    });
  }

  async settle(x: X, outcome: Outcome): Promise<void> {
    try {
      await this.#ask("settle", x, (now) => ({ ...this.about(now, x), outcome }), nothing);
    } finally {
      this.over(x);
    }
  }

  /** What only looks may still be looking at the end, and asks of the request then: it goes when that one has heard that this is over. */
  over({ id }: Arrival): void {
    const { told } = this.#of;
    const one = this.#looks ? told.get(id) : told.take(id);
    one?.link.mention("over", { x: id });
  }

  readonly #with = (request: ModelRequest, x: Exchange) => (link: OutsideLink) => {
    this.#told(link, x).request = true;
    return { x: plainExchange(x), request };
  };

  #told(link: OutsideLink, x: X): ToldRequest {
    const there = this.#of.told.get(x.id);
    if (there?.link === link) return there;
    const one = { x, link, request: false };
    this.#of.told.put(x.id, one);
    return one;
  }

  #ask<R>(
    hook: OutsideHook,
    x: X,
    given: (link: OutsideLink) => object,
    made: (said: Said) => R,
    answers?: LentAnswers,
  ): Promise<R> {
    const asked = (link: OutsideLink) =>
      link.ask(hook, given(link), new HookQuestion(hook, x, link, made, answers)) as Promise<R>;
    const link = this.#of.link();
    return "then" in link ? link.then(asked) : asked(link);
  }
}

/** A class and no closures: each request has one for each hook. */
class HookQuestion implements AskingOptions {
  readonly #hook: OutsideHook;
  readonly #x: X;
  readonly #link: OutsideLink;
  readonly #made: (said: Said) => unknown;
  readonly answers: LentAnswers | undefined;

  constructor(
    hook: OutsideHook,
    x: X,
    link: OutsideLink,
    made: (said: Said) => unknown,
    answers: LentAnswers | undefined,
  ) {
    this.#hook = hook;
    this.#x = x;
    this.#link = link;
    this.#made = made;
    this.answers = answers;
  }

  /** The client goes: what works for it hears. A signal costs as much as a short hook does, so that a long one alone has it. */
  slow(): void {
    const { signal, id } = this.#x;
    const gone = () => this.#link.tell("gone", { x: id });
    if (signal.aborted) gone();
    else signal.addEventListener("abort", gone, { once: true });
  }

  read(said: unknown): unknown {
    if (!isMapping(said))
      throw new PluginFailure(`It answered ${this.#hook} with what is no object.`);
    if (said["does"] !== undefined) done(this.#x, said);
    return this.#made(said);
  }
}

const nothing = (): undefined => undefined;

function edited({ fields, without = [] }: Said): Body | undefined {
  if (fields === undefined) return undefined;
  if (!isMapping(fields) || !Array.isArray(without))
    throw new PluginFailure("edit gave no fields.");
  const gone = (without as readonly unknown[]).map((field) => [String(field), undefined]);
  return { ...(fields as Body), ...Object.fromEntries(gone) };
}

function routed(said: unknown, list: Parameters<NonNullable<Hooks["route"]>>[0]): RouteResult {
  if (!Array.isArray(said)) throw new PluginFailure("route gave no list.");
  return (said as readonly unknown[]).map((one) => {
    const { i, kind, code, message } = (isMapping(one) ? one : {}) as Record<string, unknown>;
    const candidate = list[typeof i === "number" ? i : -1];
    if (!candidate) throw new PluginFailure("route gave a candidate that there is not.");
    return kind === undefined ? candidate : ({ candidate, kind, code, message } as Exclusion);
  });
}

function attempted(said: Said, reply: Reply | undefined): AttemptResult {
  const { answer, recorded } = said;
  if (isMapping(answer)) return { answer: answer as never };
  if (isMapping(recorded) && typeof recorded["body"] === "string")
    return {
      ...(recorded as unknown as RecordedAnswer),
      body: Buffer.from(recorded["body"], "base64"),
    };
  if (said["reply"] === true && reply) return reply;
  throw new PluginFailure("attempt gave no answer.");
}
