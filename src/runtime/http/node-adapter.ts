// Passes Node's requests and responses to h3. h3's own adapter ends a response that a handler has
// already ended a second time, which costs more than all other routing. This adapter skips finished
// responses.
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { H3 } from "h3";
import { NodeRequest, sendNodeResponse } from "srvx/node";
import type { ExactRouteHandler } from "./exact-route.ts";

/**
 * Creates the request listener. A handler that writes to the Node response resolves when its
 * response has started, and its return value is ignored. `respondUnrouted` replaces responses that
 * h3 generates, for example for a malformed path. The exact-route handler is called before h3.
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

/** Answers errors that h3 did not handle, without details for the client. */
function respondInternalError(res: ServerResponse): void {
  if (hasStarted(res)) res.destroy();
  else res.writeHead(500, { connection: "close" }).end();
}
