package dev.contextengine.client;

import dev.contextengine.v1.AttachRequest.Completion;
import dev.contextengine.v1.AttachResponse.Job;

/** A model that is lent to the server: a function from a job to its completion. */
@FunctionalInterface
public interface LentModel {
    /**
     * Works on a job. Its thread is interrupted where nobody wants the job any more.
     *
     * @param job what is to be completed
     * @return the completion, which lacks no more than its ids
     * @throws Exception where the model failed; what it says stays here
     */
    Completion complete(Job job) throws Exception;

    /**
     * A model that answers texts.
     *
     * @param model a function from a job to a text
     * @return the model
     */
    static LentModel ofText(TextModel model) {
        return job -> Completion.newBuilder().setText(model.complete(job)).build();
    }

    /** A model that answers texts. */
    @FunctionalInterface
    interface TextModel {
        /**
         * Works on a job.
         *
         * @param job what is to be completed
         * @return the text
         * @throws Exception where the model failed
         */
        String complete(Job job) throws Exception;
    }
}
