export { type App, type AppOptions, createApp } from "./app.ts";
export { type Credential, newCredential, type Role, readCredentials, type Who } from "./credentials.ts";
export { type Access, type Call, type Route, route, type SignedCall } from "./route.ts";
export { type Served, type ServeOptions, serve } from "./serve.ts";
export type { Bucket, ServerLimits } from "./server-limits.ts";
