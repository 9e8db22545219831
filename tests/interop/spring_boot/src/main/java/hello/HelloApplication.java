// --8<-- [start:application]
package hello;

import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.core.JmsTemplate;

@SpringBootApplication
public class HelloApplication {
    public static void main(String[] args) {
        SpringApplication.run(HelloApplication.class, args);
    }

    @Bean
    CommandLineRunner sender(JmsTemplate template) {
        return arguments -> template.convertAndSend("orders", "a book");
    }

    @JmsListener(destination = "orders")
    void receive(String order) {
        System.out.println("received " + order);
    }
}
// --8<-- [end:application]
