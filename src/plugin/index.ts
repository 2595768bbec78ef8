// tollgate/plugin: the public contract, api 1. The only module, with tollgate/protocols/*, that a plugin imports.
// May import: the model floor. May not: anything above. A change here is a change for every published plugin.
export * from "../model/values.ts";
export * from "../model/error.ts";
export * from "../model/usage.ts";
export * from "../model/request.ts";
export * from "../model/work.ts";
export { chatWork } from "../model/chat-work.ts";
export { imageWork } from "../model/image-work.ts";
export * from "../model/event.ts";
export * from "../model/facts.ts";
export { fold, folding } from "../model/fold.ts";
export * from "./schema.ts";
export * from "./plugin.ts";
export * from "./look.ts";
export * from "./protocol.ts";
export * from "./exchange.ts";
export * from "./call.ts";
export * from "./provider.ts";
export * from "./frontend.ts";
export * from "./middleware.ts";
export * from "./observer.ts";
export * from "./store.ts";
export * from "./instance.ts";
export * from "./limit.ts";
export * from "./context.ts";
export * from "./define.ts";
