// From Node's request and response to h3. h3's own adapter ends a second time what a handler has already ended, which costs
// more than the whole rest of the way; this one leaves such an answer alone.
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { H3 } from "h3";
import { NodeRequest, sendNodeResponse } from "srvx/node";
import type { ExactRouteHandler } from "./exact-route.ts";

/**
 * A handler that answers on the node response itself resolves when its answer has begun; its return value is not looked at.
 * `stray` answers what h3 answered by itself: a path that it cannot decode, say. `straight` is asked before h3 is.
 */
export function createNodeHandler(
  app: H3,
  respondUnrouted?: (req: IncomingMessage, res: ServerResponse, status: number) => void,
  exactRoute?: ExactRouteHandler,
): RequestListener {
  const searched = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    try {
      const answer = await app.fetch(new NodeRequest({ req, res }));
      if (hasStarted(res)) return;
      if (respondUnrouted) respondUnrouted(req, res, answer.status);
      else await sendNodeResponse(res, answer);
    } catch {
      respondInternalError(res);
    }
  };
  return (req, res) => {
    try {
      const walking = exactRoute?.(req, res);
      if (walking) walking.catch(() => respondInternalError(res));
      else void searched(req, res);
    } catch {
      respondInternalError(res);
    }
  };
}

const hasStarted = (res: ServerResponse) => res.headersSent || res.writableEnded || res.destroyed;

/** h3 answers errors of its own. This is for errors behind that, and tells the client nothing of them. */
function respondInternalError(res: ServerResponse): void {
  if (hasStarted(res)) res.destroy();
  else res.writeHead(500, { connection: "close" }).end();
}
