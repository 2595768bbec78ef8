// examples/hooks.ts
import { defineMiddleware, fail, parseScopedLimit } from "tollgate/plugin";

const compareCosts = (a: bigint | null, b: bigint | null): number =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : a < b ? -1 : 1;

export default defineMiddleware({
  api: 1,
  name: "hooks",
  summary: "Shows every hook of a middleware",
  sends: "nowhere",
  setup: (_options, ctx) => ({
    admit(x) {
      const team = String(x.headers["x-team"] ?? "none");
      if (!/^[\w-]{1,32}$/.test(team))
        fail("invalid", "Invalid header x-team: use letters, digits, - and _.");
      x.addLabel("team", team);
    },

    edit(x) {
      if (x.protocol !== "chat-completions") return undefined;
      return { user: undefined };
    },

    rewrite(request) {
      if (request.operation !== "chat") return request;
      const instruction = { type: "text", text: "Answer in English." } as const;
      return { ...request, instructions: [...request.instructions, instruction] };
    },

    inspect(request, x) {
      if (request.operation !== "chat") return;
      if (request.tools.length > 64) fail("invalid", "At most 64 tools are allowed.");
      x.addLabel("tools", String(request.tools.length));
    },

    route(list, x) {
      const usage = { input: x.inputSize.tokens, output: 1_000 };
      const cost = new Map(list.map((candidate) => [candidate, ctx.quoteCost(candidate, usage)]));
      return list.toSorted((a, b) => compareCosts(cost.get(a) ?? null, cost.get(b) ?? null));
    },

    charge(call) {
      const team = String(call.exchange.headers["x-team"] ?? "none");
      return { limits: [parseScopedLimit("requests=600/minute", `team:${team}`)] };
    },

    prepare(out, call) {
      out.setHeader("x-request-id", call.exchange.id);
    },

    async attempt(call, next) {
      const reply = await next();
      call.exchange.setResponseHeader("x-upstream-status", String(reply.status));
      return reply;
    },

    event(_call, next) {
      return (event) => {
        if (event.type === "delta") next({ ...event, text: event.text.replaceAll("\u00a0", " ") });
        else next(event);
      };
    },

    watch(_call, stop) {
      let length = 0;
      return (event) => {
        if (event.type !== "delta") return;
        length += event.text.length;
        if (length > 1_000_000) stop({ kind: "upstream", message: "The response is too long." });
      };
    },

    settle(x, { status, calls }) {
      if (status >= 500) ctx.log.warn({ request: x.id, calls: calls.length }, "request failed");
    },
  }),
});
