/** Messages in the formats of providers, in and out. */
package dev.contextengine.client.formats;
