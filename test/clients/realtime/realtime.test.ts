// JavaScript's official clients of Realtime and of the Live API.
import { describeClients } from "./describe-clients.ts";
import { JAVASCRIPT_CLIENTS } from "./drivers.ts";

describeClients(JAVASCRIPT_CLIENTS);
