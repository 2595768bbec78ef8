// Requests whose bodies are processed as they arrive. They may be larger than memory, so the time
// limit of a complete request does not apply to them.
import type { IncomingMessage } from "node:http";

const streamed = new WeakSet<IncomingMessage>();

export const markAsStreamed = (req: IncomingMessage): void => void streamed.add(req);

export const isStreamed = (req: IncomingMessage): boolean => streamed.has(req);
