import { fail } from "../model/error.ts";
import type { Visit } from "./exchange.ts";

/** Who is asking, may they, and what may be kept of it: decided on the head, before a byte of the body is read. */
export async function admit(x: Visit): Promise<void> {
  const { frontend, req } = x["~"];
  const secret = frontend.secret(req.headers);
  for (const hook of frontend.chain.admit) {
    const waiting = hook.run(x, secret);
    if (waiting) await waiting;
  }
  const who = x.identity;
  if (!who)
    return fail("unauthenticated", "Nobody here knows this request. Send a valid key.", {
      code: "invalid_api_key",
    });
  if (who.frontends && !who.frontends.includes(x.frontend))
    fail(
      "forbidden",
      `This key may not use ${x.frontend}. It may use: ${who.frontends.join(", ")}.`,
      {
        code: "frontend_not_allowed",
      },
    );
  keepPrivate(x);
}

/** A wish for privacy that nobody here can grant is refused, never ignored. */
function keepPrivate(x: Visit): void {
  const inner = x["~"];
  if (!inner.tightened && inner.req.headers["service-zdr"] !== undefined)
    fail("invalid", "Service-ZDR cannot be honoured here: the zdr middleware is not mounted.", {
      code: "invalid_service_zdr",
      param: "Service-ZDR",
    });
  if (x.privacy === "off") return;
  if (!inner.tightened)
    fail("privacy", "This key asks for a data policy, and the zdr middleware is not mounted.", {
      code: "zdr_unavailable",
    });
  for (const { id, sends } of inner.frontend.chain.senders) {
    const safe = sends !== "nowhere" && sends.retention.kind === "zero" && sends.trains === "no";
    if (!safe)
      fail("privacy", `${id} sends content to a place whose data policy is not known to be zero.`, {
        code: "zdr_unavailable",
        param: "Service-ZDR",
        details: { reason: "route_plugin" },
      });
  }
}
